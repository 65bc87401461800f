"""The operations on a run, its plan and its approvals; alarms; arming; simulated labs."""

from labharness.core.operations import (
    JSON,
    LAB,
    LAB_FILE,
    REQUEST,
    SIGNED,
    TASK,
    ask,
    choice,
    flag,
    heading,
    option,
    read,
    row,
    steer,
    word,
)

ROLES = ("operator", "maintainer")
ROLE = choice("--role", ROLES, "your role (default operator)", "operator")
EITHER = "operator maintainer"
ALARM = (word("alarm", "ALARM"), *SIGNED, ROLE, LAB)

OPERATIONS = (
    ask(
        "run",
        "run one task, from an HCP task_submit message to its answer",
        TASK,
        LAB,
        option("--out", "DIR", "folder of answer, journal, report (default runs/<time>-<session>)"),
        option(
            "--speed",
            "fast|real|N",
            "lab seconds per second; fast runs a simulated lab without waiting",
            value="speed",
        ),
        option("--seed", "SEED", "seed of a simulated run (default 1)", value="seed"),
        option("--resume", "DIR", "go on from the newest checkpoint of the run in DIR"),
        flag("--json", "print the answer as one HCP message, and nothing else"),
        choice(
            "--log-level",
            ("debug", "info", "warning", "error"),
            "detail of DIR/run.log; debug has each exchange with an instrument (default warning)",
            "warning",
        ),
        option(
            "--approval-timeout",
            "SECONDS",
            "how long to wait for an approval (default a day; no wait at --speed fast)",
            value="seconds",
        ),
        group="first",
        where="line owner",
    ),
    row(
        "plan",
        "predict one task on the simulated plant; nothing is submitted",
        TASK,
        LAB,
        flag("--dry-run", "changes nothing: a plan is always a dry run"),
        (
            flag("--json", "print the prediction as JSON"),
            choice("--draw", ("text", "mermaid"), "print the graph of the instructions", None),
        ),
        group="first",
        kind="propose",
    ),
    heading("policy", "check the callers file, or explain a decision of admission", group="tasks"),
    read("policy check", "print the rights of each caller, and those without effect", LAB),
    read(
        "policy explain",
        "print what each gate finds of one task; nothing is submitted",
        TASK,
        LAB,
        option("--caller", "ID", "as this caller (default: the task's)"),
        JSON,
    ),
    steer(
        "arm", "write the file from which the guard process arms itself", LAB_FILE, group="safety"
    ),
    heading("approvals", "list, approve or reject requests that wait for a person", group="tasks"),
    read("approvals list", "print one line for each", LAB),
    read("approvals show", "print one request with its plan, prediction and hazards", REQUEST, LAB),
    steer(
        "approvals approve",
        "approve exactly this plan",
        REQUEST,
        LAB,
        *SIGNED,
        option("--key", "FILE", "your key, where the lab has approvers"),
        right="person",
    ),
    steer("approvals reject", "reject this plan", REQUEST, LAB, *SIGNED, right="person"),
    steer(
        "approvals key",
        "make a key with which a person approves",
        option("--name", "NAME", "name of the person", value="words", required=True),
        option("--out", "FILE", "where the key is written", required=True),
        right="person",
    ),
    heading("alarms", "list, acknowledge or shelve alarms", group="safety"),
    read("alarms list", "print the alarms that are active, unacknowledged or silenced", LAB),
    steer("alarms test", "send a test message on every alert channel", LAB),
    steer(
        "alarms ack",
        "acknowledge one alarm, or all",
        word("alarm", "ALARM|all"),
        *SIGNED,
        ROLE,
        LAB,
        right=EITHER,
    ),
    steer(
        "alarms shelve",
        "silence an alarm for a while",
        *ALARM,
        (
            option("--minutes", "MIN", "for how long (default 480)", value="minutes"),
            flag("--once", "until its cause is gone"),
        ),
        right=EITHER,
    ),
    steer("alarms unshelve", "end that", *ALARM, right=EITHER),
    steer("alarms suppress", "silence an alarm by design (maintainer)", *ALARM, right="maintainer"),
    steer("alarms unsuppress", "end that (maintainer)", *ALARM, right="maintainer"),
    steer("alarms remove", "take an alarm out of service (maintainer)", *ALARM, right="maintainer"),
    steer("alarms place", "put it back into service (maintainer)", *ALARM, right="maintainer"),
    steer(
        "simulate",
        "serve a simulated lab on real ports",
        LAB_FILE,
        option("--speed", "N", "lab seconds per second (default 1)", value="times", default=1.0),
        option("--seed", "SEED", "seed of plant and noise (default 1)", value="seed", default=1),
        option("--folder", "DIR", "where the served ports stand"),
        option("--write-lab", "OUT.toml", "lab file of the served ports (default DIR/lab.toml)"),
        option(
            "--tcp",
            "PORT=NUMBER",
            "serve a port of the lab at this TCP port (default: a free one); may be repeated",
            many="append",
        ),
        group="simulated",
    ),
    steer(
        "simulated",
        "read the true state of a served lab, or inject a fault",
        word("folder", "DIR", told="the folder where the lab is served"),
        word(
            "asked",
            "WHAT",
            told="status, truth, faults, fault NAME=VALUE, bus PORT NAME=VALUE, "
            "panel INSTRUMENT NAME=VALUE, operate ACTION NAME=VALUE, bytes since=ROW, quit",
        ),
        word("details", "NAME=VALUE", many="*", default=[]),
        group="simulated",
    ),
)
