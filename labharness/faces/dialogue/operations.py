"""The operations that ask a model about a lab, and that let other programs do so."""

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
    ask(
        "mcp-cp",
        "serve dialogues about a lab: MCP-CP on stdin and stdout, or on WebSockets",
        LAB,
        option("--caller", "ID", "the caller of stdin and stdout", value="words"),
        option(
            "--websocket",
            "PORT",
            "WebSockets on a port of this machine instead (0 takes any)",
            value="port",
        ),
        choice("--model", MODELS, "a model in a file, or that of the lab file (default)", "lab"),
        group="elsewhere",
        where="house",
    ),
)
