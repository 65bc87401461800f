"""The operations on a lab for callers elsewhere."""

from labharness.core.operations import BROKER, LAB, RUNS, SPEED, flag, heading, option, read, steer

BROKER_OF = (
    LAB,
    option("--account", "NAME", "account of the lab itself (default: the id of the lab)"),
    flag("--callers-passive", "callers may not declare the exchanges, and so not delete them"),
    flag("--quorum", "quorum queues also where the broker is not a cluster"),
    option(
        "--management",
        "URL",
        "http(s)://administrator@host:port (default: the variable LABHARNESS_MANAGEMENT)",
    ),
    option("--ca", "FILE", "certificates of the broker's authority, for https"),
)

OPERATIONS = (
    steer(
        "serve",
        "be the house of a lab for callers over RabbitMQ; starts its line owner if need be",
        LAB,
        flag("--stdio", "without a broker: HCP messages as JSON Lines on stdin and stdout"),
        option(
            "--websocket",
            "PORT",
            "without a broker: WebSockets on a port of this machine (0 takes any)",
            value="port",
        ),
        *BROKER,
        option("--key", "FILE", "key of the certificate, if its file has none", stored="cert_key"),
        option(
            "--http",
            "PORT",
            "port of this machine with agent card, health and metrics (default: none; 0 takes any)",
            value="port",
        ),
        option("--traces", "URL", "OpenTelemetry collector of the tasks' traces (OTLP over HTTP)"),
        SPEED,
        RUNS,
        group="elsewhere",
        where="house",
    ),
    heading("broker", "write or check what a lab needs on RabbitMQ", group="elsewhere"),
    steer(
        "broker setup",
        "write accounts, rights and policies; print what is still different",
        *BROKER_OF,
        option("--passwords", "FILE", "TOML file with passwords (default: new ones are asked)"),
        flag("--print", "print the lines of rabbitmqctl that do it, and do nothing"),
    ),
    read("broker check", "print each difference from that", *BROKER_OF),
)
