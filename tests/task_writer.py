"""A process that creates tasks in a house journal and prints each as soon as it is acknowledged."""

import sys
from pathlib import Path

from labharness.work.task.commands import CreateTask, TaskActor
from labharness.work.task.house import HouseJournal

if __name__ == "__main__":
    house = HouseJournal(Path(sys.argv[1]))
    number = len(house.tasks.by_id)
    while True:
        command = CreateTask(task_id=f"t{number}", objective="grow", key=f"k{number}")
        house.give(command, TaskActor("ana", "caller"), 1000.0 + number)
        sys.stdout.write(f"t{number}\n")
        sys.stdout.flush()
        number += 1
