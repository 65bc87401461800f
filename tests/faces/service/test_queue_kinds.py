"""Where quorum queues are wanted, what differs from that, and what setup may change by itself."""

import re
import shlex

from hypothesis import given
from hypothesis import strategies as st

from labharness.faces.service.queue_kinds import (
    Kinds,
    QueueSeen,
    kind_differences,
    seen,
)
from labharness.faces.service.rights import (
    Parties,
    control_lines,
    definitions,
    differences,
    policies,
)

LAB = Parties("lab-1", "lab-1", ("alpha",))
COMMANDS = QueueSeen("hcp.cmd.lab-1", "quorum", single=True)
NEW, OLD = "3.12.0", "3.10.8"
RIGHT = Kinds(nodes=3, version=NEW, default="quorum", queues=(COMMANDS,))

QUEUES = st.builds(
    QueueSeen,
    st.sampled_from([*LAB.queues, "hcp.evt.other", "hcp.cmd.lab-2"]),
    st.sampled_from(["classic", "quorum", "stream"]),
    st.booleans(),
)
KINDS = st.builds(
    Kinds,
    st.integers(1, 5),
    st.sampled_from([OLD, "3.11.16", "3.11.17", NEW, "4.1.0-rc.1", "unknown"]),
    st.sampled_from(["", "classic", "quorum", "stream"]),
    st.lists(QUEUES, max_size=4, unique_by=lambda each: each.name).map(tuple),
)


def said(kinds: Kinds, *, asked: bool = False) -> list[str]:
    return [str(each) for each in kind_differences(LAB, kinds, asked=asked)]


def test_a_cluster_with_quorum_queues_is_as_it_should_be() -> None:
    assert said(RIGHT) == []


def test_one_broker_alone_may_have_either_kind_until_quorum_queues_are_asked_for() -> None:
    alone = Kinds(1, NEW, "classic", (QueueSeen("hcp.cmd.lab-1", "classic"),))
    assert said(alone) == []
    assert len(said(alone, asked=True)) == 2
    assert said(RIGHT._replace(nodes=1)) == []


def test_a_cluster_whose_default_is_another_kind_is_told_with_the_line_that_changes_it() -> None:
    (line,) = said(RIGHT._replace(default="classic"))
    assert line.startswith("virtual host /hcp: default queue type is classic")
    assert line.endswith("rabbitmqctl update_vhost_metadata /hcp --default-queue-type quorum")


def test_a_rabbitmq_that_changes_no_default_is_told_with_the_version_that_does() -> None:
    for version in (OLD, "3.11.16", "unknown"):
        (line,) = said(RIGHT._replace(default="classic", version=version))
        assert f"RabbitMQ {version} does not change it" in line
        assert "RabbitMQ 3.11.17 or later" in line
    for version in ("3.11.17", "3.12.0", "4.1.0-rc.1"):
        assert "or later" not in said(RIGHT._replace(default="classic", version=version))[0]


def test_each_queue_of_another_kind_is_named_with_a_line_that_deletes_it_only_if_it_is_empty() -> (
    None
):
    found = said(RIGHT._replace(queues=(COMMANDS, QueueSeen("hcp.evt.o'neil", "classic"))))
    assert len(found) == 1
    assert found[0].startswith("queue hcp.evt.o'neil is classic")
    words = shlex.split("rabbitmqctl " + found[0].partition("run rabbitmqctl ")[2])
    assert words[1:] == [
        *("delete_queue", "--vhost", "/hcp", "--if-empty", "--if-unused", "hcp.evt.o'neil"),
    ]


def test_a_queue_of_commands_that_two_consumers_share_is_named_and_so_is_one_that_is_missing() -> (
    None
):
    (shared,) = said(RIGHT._replace(queues=(COMMANDS._replace(single=False),)))
    assert "hcp.cmd.lab-1 gives its messages to several consumers" in shared
    (missing,) = said(RIGHT._replace(queues=()))
    assert missing == "queue hcp.cmd.lab-1 is missing"


@given(KINDS, st.booleans())
def test_the_default_is_changed_only_where_no_queue_is_then_refused(
    kinds: Kinds, asked: bool
) -> None:
    """A declaration without a kind is refused (406) where a queue of another kind is there."""
    if kinds.may_change(asked=asked):
        assert kinds.has_quorum(asked=asked)
        assert kinds.default in ("classic", "stream")
        assert all(each.kind == "quorum" for each in kinds.queues)


@given(KINDS, st.booleans())
def test_whatever_is_of_another_kind_in_a_cluster_is_named_once(kinds: Kinds, asked: bool) -> None:
    found = said(kinds, asked=asked)
    if not (asked or kinds.nodes > 1 or kinds.default == "quorum"):
        assert found == []
        return
    for each in kinds.queues:
        lines = [line for line in found if line.startswith(f"queue {each.name} is {each.kind}")]
        assert len(lines) == (each.kind != "quorum")
    of_default = [line for line in found if line.startswith("virtual host")]
    assert len(of_default) == (kinds.default not in ("", "quorum"))


def test_the_answers_of_the_management_interface_are_read() -> None:
    hosts = [
        {"name": "/", "default_queue_type": "quorum"},
        {"name": "/hcp", "default_queue_type": "undefined"},
    ]
    queues = [
        {"name": "hcp.cmd.a", "vhost": "/hcp", "type": "quorum", "arguments": {"x-queue-type": ""}},
        {"name": "hcp.evt.b", "vhost": "/hcp", "type": "classic", "arguments": {}},
        {
            "name": "hcp.cmd.c",
            "vhost": "/hcp",
            "type": "quorum",
            "arguments": {"x-single-active-consumer": True},
        },
        {"name": "hcp.cmd.d", "vhost": "/", "type": "classic", "arguments": {}},
        {"name": "jobs", "vhost": "/hcp", "type": "classic", "arguments": {}},
    ]
    found = seen(OLD, [{"name": "a@x"}, {"name": "b@x"}], hosts, queues)
    assert found == Kinds(
        nodes=2,
        version=OLD,
        default="classic",
        queues=(
            QueueSeen("hcp.cmd.a", "quorum"),
            QueueSeen("hcp.evt.b", "classic"),
            QueueSeen("hcp.cmd.c", "quorum", single=True),
        ),
    )
    assert seen(OLD, [], [], []).default == ""


def test_a_quorum_queue_has_the_bounds_of_any_other_and_gives_no_message_up() -> None:
    """From RabbitMQ 4.0 on a quorum queue drops what it has given out 20 times, if not told so."""
    of_any = policies(quorum=False)
    for of_all, of_quorum in zip(of_any, policies(quorum=True)[len(of_any) :], strict=True):
        assert of_quorum["pattern"] == of_all["pattern"]
        assert of_quorum["priority"] > of_all["priority"]
        definition = dict(of_quorum["definition"])
        assert definition.pop("delivery-limit") == 1_000_000
        assert definition == of_all["definition"]


def test_a_broker_that_took_the_definitions_of_quorum_queues_does_not_differ() -> None:
    told = definitions(LAB, dict.fromkeys(LAB.users, ""), quorum=True)
    assert list(differences(LAB, told, quorum=True)) == []
    assert list(differences(LAB, told)) == [], "our own policies do not stand before ours"
    del told["policies"][-1]
    (line,) = differences(LAB, told, quorum=True)
    assert str(line) == "policy hcp.dead.quorum is missing"


def test_the_lines_of_rabbitmqctl_make_a_virtual_host_of_quorum_queues() -> None:
    lines = list(control_lines(LAB, quorum=True))
    assert lines[0] == "rabbitmqctl add_vhost /hcp --default-queue-type quorum"
    assert sum("delivery-limit" in each for each in lines) == len(policies(quorum=False))
    assert not any(re.search("quorum|delivery", each) for each in control_lines(LAB))
