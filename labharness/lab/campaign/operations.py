"""The operations on a series of tasks over several labs."""

from labharness.core.operations import JSON, ask, heading, option, read, word

OPERATIONS = (
    heading("campaign", "carry out one series of tasks over several labs", group="tasks"),
    ask(
        "campaign run",
        "begin a campaign, or go on with it, to its end",
        word("file", "CAMPAIGN.toml"),
        option("--seed", "SEED", "seed of simulated runs (default 1)", value="seed"),
        JSON,
        where="house",
    ),
    read(
        "campaign status", "show what is known of each point", word("file", "CAMPAIGN.toml"), JSON
    ),
)
