"""The operations on the messages of HCP."""

from labharness.core.operations import option, read, word

OPERATIONS = (
    read("example", "print a task to begin with: labharness example > task.json", group="first"),
    read(
        "schema",
        "list or print the JSON Schemas of HCP's and MCP-CP's messages, and the AsyncAPI document",
        word(
            "name",
            "NAME",
            many="?",
            told="a message such as task_submit, or asyncapi",
        ),
        option("--out", "DIR", "write all of them into this folder instead"),
        group="tasks",
    ),
)
