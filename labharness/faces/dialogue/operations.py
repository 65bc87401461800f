"""The operation that asks a model about a lab."""

from labharness.core.operations import LAB, ask, choice, option, word

MODELS = ("scripted", "lab")

OPERATIONS = (
    ask(
        "ask",
        "ask a model in words about a lab; it reads, proposes a task, and reports",
        word("words", "TEXT", many="?"),
        LAB,
        option("--caller", "ID", "the caller whose rights it has", value="words", required=True),
        choice("--model", MODELS, "a model in a file, or that of the lab file (default)", "lab"),
        option("--context", "ID", "the dialogue to go on with (default: a new one)"),
        group="tasks",
        where="house",
    ),
)
