"""Time the start of the command line: ``labharness --help`` beside bare Python and argparse."""

import os
import subprocess
import sys
import time
from statistics import median

ROUNDS = 15  # the three take turns, so that a busy moment affects all of them
RATIO_MAX = 6.0  # of --help to a program that only imports argparse

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "python -c 'import argparse'": ["-c", "import argparse"],
    "labharness --help": ["-m", "labharness.faces.cli", "--help"],
}


def start_ms(arguments: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - started) * 1e3


def main() -> None:
    for arguments in COMMANDS.values():
        start_ms(arguments)  # warms the file cache and writes the byte code
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(ROUNDS):
        for name, arguments in COMMANDS.items():
            times[name].append(start_ms(arguments))
    floor_ms = median(times["python -c 'import argparse'"])
    print(f"start-up, median of {ROUNDS} on {os.cpu_count()} cores")
    print(f"{'program':30} {'ms':>8} {'x argparse':>11}")
    for name, found in times.items():
        print(f"{name:30} {median(found):8.1f} {median(found) / floor_ms:11.2f}")
    print(f"target: labharness --help at most {RATIO_MAX:g} x argparse")


if __name__ == "__main__":
    main()
