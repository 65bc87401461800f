"""The table of rights: each account has its own names, and no name that begins or ends like one."""

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labharness.faces.service.rights import (
    OPERATIONS,
    Parties,
    definitions,
    differences,
    hashed,
    policies,
)
from labharness.protocols.hcp import wire

IDS = st.text("ab.-_0", min_size=1, max_size=4)
LABS = st.from_regex(r"\A[ab][ab0-]{0,3}\Z")


@st.composite
def parties(draw: st.DrawFn) -> Parties:
    names = draw(st.lists(IDS, min_size=1, max_size=4, unique=True))
    return Parties(draw(LABS), names[0], tuple(names[1:]), draw(st.booleans()))


def names(of: Parties) -> set[str]:
    """The names of all that there is, and names like them."""
    real = {*of.queues, *wire.EXCHANGES, "amq.default", "amq.topic", "hcp.evt.zz", "hcp.cmd.zz"}
    return real | {f"{each}x" for each in real} | {each.replace(".", "-") for each in real}


@given(parties())
@pytest.mark.promise(67)
def test_an_account_has_the_names_of_the_table_and_none_that_is_like_one(of: Parties) -> None:
    for user, operation, name in product(of.users, OPERATIONS, names(of)):
        pattern = of.permission(user)[operation]
        assert bool(re.search(pattern, name)) is (name in of.names(user, operation))


@given(parties())
@pytest.mark.promise(67)
def test_no_caller_reaches_what_is_anothers(of: Parties) -> None:
    shared = {"hcp.commands": {"write"}, "hcp.events": {"read"}}
    if of.callers_declare:
        shared = {name: {*each, "configure"} for name, each in shared.items()}
    for user, operation in product(of.callers, OPERATIONS):
        for name in of.names(user, operation):
            assert name == f"hcp.evt.{user}" or operation in shared[name]


@given(parties(), IDS)
@pytest.mark.promise(67)
def test_a_caller_binds_its_own_topics_only(of: Parties, other: str) -> None:
    for user in of.callers:
        found = of.topics(user)
        own = user.replace(".", "%2E")
        assert re.search(found["read"], f"{own}.#")
        assert re.search(found["read"], f"{own}.*.task_completed")
        keys = ["#", "*.#", "*.s.event", f"x{own}.#", f"{own}x.#"]
        if other != user:
            keys.append(f"{other.replace('.', '%2E')}.#")
        assert not any(re.search(found["read"], each) for each in keys)
        assert not any(re.search(found["write"], each) for each in (*keys, f"{own}.s.event"))


@given(parties())
def test_a_broker_that_took_the_definitions_does_not_differ(of: Parties) -> None:
    told = definitions(of, dict.fromkeys(of.users, ""))
    assert list(differences(of, told)) == []


ALPHA = Parties("lab-1", "lab-1", ("alpha",))


def changed(kind: str, at: int, **fields: object) -> list[str]:
    told = definitions(ALPHA, dict.fromkeys(ALPHA.users, ""))
    told[kind][at] |= fields
    return [str(each) for each in differences(ALPHA, told)]


@pytest.mark.parametrize(
    ("kind", "at", "fields", "words"),
    [
        ("permissions", 1, {"read": ".*"}, "rights of alpha: read is .*"),
        ("topic_permissions", 1, {"read": ".*"}, "topics of alpha hcp.events: read is .*"),
        ("users", 1, {"tags": ["impersonator"]}, 'account alpha: tags is ["impersonator"]'),
        ("policies", 1, {"definition": {}}, "policy hcp.evt: definition is {}"),
        ("policies", 1, {"priority": 0}, "policy hcp.evt: priority is 0"),
        ("exchanges", 1, {"type": "fanout"}, "exchange hcp.events: type is fanout"),
        ("vhosts", 0, {"name": "/"}, "virtual host /hcp is missing"),
    ],
)
def test_each_difference_is_one_line_that_names_it(
    kind: str, at: int, fields: dict[str, object], words: str
) -> None:
    (line,) = changed(kind, at, **fields)
    assert line.startswith(words)


@given(st.sampled_from(sorted(definitions(ALPHA, dict.fromkeys(ALPHA.users, "")))), st.integers(0))
def test_whatever_is_missing_is_named(kind: str, at: int) -> None:
    told = definitions(ALPHA, dict.fromkeys(ALPHA.users, ""))
    del told[kind][at % len(told[kind])]
    (line,) = differences(ALPHA, told)
    assert "missing" in line


def test_a_stranger_with_a_right_to_our_queues_is_named() -> None:
    told = definitions(ALPHA, dict.fromkeys(ALPHA.users, ""))
    for user, read in (("wide", r"^hcp\."), ("broken", "("), ("other-lab", r"^hcp\.cmd\.other$")):
        row = {"user": user, "vhost": "/hcp", "configure": "^$", "write": "^$", "read": read}
        told["permissions"].append(row)
    every = {"configure": ".*", "write": ".*", "read": ".*"}
    for user, tags in (("root", ["administrator"]), ("old", "monitoring,administrator")):
        told["users"].append({"name": user, "tags": tags})  # it may give itself any right
        told["permissions"].append({"user": user, "vhost": "/hcp", **every})
    named = [str(each) for each in differences(ALPHA, told)]
    assert [each.split()[1] for each in named] == ["wide", "broken"]
    assert all("hcp.cmd.lab-1" in each and "hcp.evt.alpha" in each for each in named)


def test_a_policy_that_stands_before_ours_is_named() -> None:
    told = definitions(ALPHA, dict.fromkeys(ALPHA.users, ""))
    before = {"vhost": "/hcp", "name": "all", "pattern": ".*", "apply-to": "all", "priority": 10}
    told["policies"].append({**before, "definition": {"max-length": 1}})
    (line,) = differences(ALPHA, told)
    assert line.startswith("policy all ")


def test_every_queue_has_one_policy_with_a_bound() -> None:
    for queue in ALPHA.queues:
        (policy,) = [each for each in policies(quorum=False) if re.search(each["pattern"], queue)]
        assert policy["definition"]["max-length"]
        assert policy["definition"]["max-length-bytes"]


def test_the_queue_of_a_caller_keeps_messages_for_a_day_and_drops_the_oldest() -> None:
    kept = {
        queue: each["definition"]
        for queue in ALPHA.queues
        for each in policies(quorum=False)
        if re.search(each["pattern"], queue)
    }
    of_callers = [kept[wire.event_queue(each)] for each in ALPHA.callers]
    assert of_callers
    for each in of_callers:
        assert each["message-ttl"] == 24 * 60 * 60 * 1000
        assert each["overflow"] == "drop-head"
    assert "message-ttl" not in kept[wire.command_queue(ALPHA.callee_id)]


def test_a_password_is_hashed_as_rabbitmq_writes_it() -> None:
    # From https://www.rabbitmq.com/docs/passwords: salt 908D C60A, password test12.
    salt = bytes.fromhex("908dc60a")
    assert hashed("test12", salt) == "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"
