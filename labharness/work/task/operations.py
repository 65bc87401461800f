"""The operations on tasks and jobs."""

from functools import partial

from labharness.core.operations import (
    BEYOND,
    CALLEE,
    JSON,
    LAB,
    NAME,
    REQUEST,
    TASK,
    WHY,
    ask,
    choice,
    flag,
    heading,
    option,
    read,
    steer,
    word,
)

STEP = word("step", "STEP", told="the step that the task waits for, as tasks show names it")
NEEDED = option("--reason", "TEXT", "why; it is recorded", value="words", required=True)
KIND = word("kind", "KIND", told="such as blocked_by, child, source_task, evidence")
ONE = (REQUEST, LAB)
ENDS = (REQUEST, KIND, word("target", "OTHER"), LAB)
EVERYBODY = "caller operator runtime"
of_everybody = partial(read, right=EVERYBODY)
staff = partial(steer, where="house", right="operator runtime")

OPERATIONS = (
    ask(
        "submit",
        "give a task to the house of a lab, which queues it",
        TASK,
        LAB,
        option("--after", "ID", "begin only when this task is completed", many="append"),
        option("--key", "KEY", "idempotency key; the same key is one task (default: a new one)"),
        option("--seed", "SEED", "seed of a simulated run (default 1)", value="seed"),
        flag("--wait", "stay until its end, and print its answer"),
        JSON,
        option("--callee", "ID", CALLEE),
        *BEYOND,
        where="house",
        group="first",
        right=EVERYBODY,
        request="create_task",
    ),
    heading("tasks", "list, show and steer the tasks of a lab", group="first"),
    of_everybody(
        "tasks list",
        "print one line for each, or one snapshot as JSON",
        LAB,
        JSON,
        request="list_tasks",
    ),
    of_everybody("tasks show", "print one task with its attempts", *ONE, JSON, request="get_task"),
    read("tasks graph", "print the relationships of the tasks", LAB, JSON),
    read("tasks events", "print what happened to the tasks, as JSON Lines", LAB),
    read("tasks result", "print the answer of a task", *ONE, JSON),
    staff(
        "tasks pause", "pause a task; one at work holds its line", *ONE, WHY, request="pause_task"
    ),
    staff("tasks resume", "resume a paused task", *ONE, WHY, request="resume_task"),
    steer(
        "tasks cancel",
        "cancel a task and all below it; its line is made safe",
        *ONE,
        WHY,
        where="house",
        right=EVERYBODY,
        request="cancel_task",
    ),
    staff(
        "tasks retry",
        "try a failed task once more",
        *ONE,
        NEEDED,
        flag("--resume", "go on from its last checkpoint, with the same sample"),
        request="retry_task",
    ),
    steer(
        "tasks confirm",
        "confirm that the manual step is done that a task waits for",
        REQUEST,
        STEP,
        LAB,
        NAME,
        where="house",
        right="operator",
    ),
    steer("tasks salvage", "keep the valid beginning of a damaged record of the tasks", LAB),
    staff(
        "tasks update",
        "change what people call a task, its place in the queue, or who sees to it",
        *ONE,
        option("--title", "TEXT", "its title", value="words"),
        option("--objective", "TEXT", "what is to be reached, for people", value="words"),
        choice("--priority", ("low", "normal", "high", "urgent"), "its place in the queue", None),
        option("--assignee", "NAME", "who sees to it", value="words"),
        request="update_task",
    ),
    staff(
        "tasks archive",
        "put an ended task aside; its record stays",
        *ONE,
        WHY,
        request="archive_task",
    ),
    staff("tasks link", "relate a task to another", *ENDS, request="link_tasks"),
    staff("tasks unlink", "end that; the record stays", *ENDS, request="unlink_tasks"),
    heading("jobs", "make and show batches and schedules of tasks", group="tasks"),
    ask(
        "jobs create",
        "have the house make a task for each value, or one whenever it is due",
        TASK,
        LAB,
        (
            option("--vary", "PATH=V1,V2", "values of a place in the payload", many="append"),
            option("--every", "WHEN", "monday@07:00, day@07:00 (UTC), or a period such as PT6H"),
        ),
        option("--title", "TEXT", "name of the job (default: the capability)", value="words"),
        option("--key", "KEY", "idempotency key; the same key is one job (default: none)"),
        option("--seed", "SEED", "seed of simulated runs (default 1)", value="seed"),
        JSON,
        where="house",
        right="operator",
        request="create_job",
    ),
    read("jobs list", "print one line for each", LAB, JSON),
    read("jobs show", "print one job with its tasks and missed runs", *ONE, JSON),
    steer(
        "jobs end",
        "end a job; its tasks go on",
        *ONE,
        WHY,
        JSON,
        where="house",
        right="operator",
        request="end_job",
    ),
)
