"""The operation that offers a lab to an agent."""

from labharness.core.operations import LAB, ask, option

OPERATIONS = (
    ask(
        "mcp",
        "offer a lab to one agent: the Model Context Protocol on stdin and stdout",
        LAB,
        option("--caller", "ID", "the caller whose rights it has", value="words", required=True),
        group="elsewhere",
        where="house",
    ),
)
