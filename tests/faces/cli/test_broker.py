"""Addresses of a broker that cannot be used: one plain error, before anything is asked or sent."""

import io

import pytest

from commands import say
from rig import SHORT_LINE

IV = SHORT_LINE.parents[1] / "envelopes/labharness_envelopes/labs/iv_bench/lab.toml"
LOCAL = "http://admin:secret@127.0.0.1:1"


@pytest.mark.parametrize(
    ("options", "url", "words"),
    [
        ((), "", ("LABHARNESS_MANAGEMENT",)),
        ((), "amqp://admin:secret@127.0.0.1", ("127.0.0.1", "https://")),
        ((), "http://admin:secret@broker.example:15672", ("in clear", "broker.example")),
        (("--management", "https://admin:secret@broker.example"), "", ("command line",)),
        (("--management", "https://admin@broker.example"), "", ("admin", "no password")),
        (("--account", "operator"), LOCAL, ("operator", "caller of this lab")),
        (("--ca", "ca.pem"), LOCAL, ("--ca", "https://")),
        (("--lab", str(IV)), LOCAL, ("callers.toml", str(IV))),
    ],
)
def test_what_cannot_be_used_is_one_plain_error_without_the_password(
    monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], url: str, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("LABHARNESS_MANAGEMENT", url)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    lab = () if "--lab" in options else ("--lab", SHORT_LINE)
    said = say("broker", "check", *lab, *options)
    said.is_one_plain_error(*words)
    assert "secret" not in said.err


def test_a_broker_that_is_away_is_one_plain_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LABHARNESS_MANAGEMENT", LOCAL)
    said = say("broker", "check", "--lab", SHORT_LINE)
    assert said.code == 1
    assert said.err.count("\n") == 1
    assert "no_management" in said.err
    assert "refused" in said.err
    assert "secret" not in said.err


def test_the_lines_of_rabbitmqctl_hold_no_password_and_ask_no_broker() -> None:
    said = say("broker", "setup", "--print", "--lab", SHORT_LINE)
    assert said.code == 0
    lines = said.out.splitlines()
    assert all(each.startswith("rabbitmqctl ") for each in lines)
    assert "rabbitmqctl add_user operator" in lines


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("amqp://lab:secret@broker.example/%2Fhcp", ("in clear", "broker.example", "amqps://")),
        ("amqp://lab:secret@192.0.2.1/%2Fhcp", ("in clear", "192.0.2.1")),
        ("amqp://", ("amqp://account",)),
        ("amqp://lab:secret@[::1", ("amqp://account",)),
        ("http://lab:secret@127.0.0.1", ("amqp://account",)),
    ],
)
def test_a_broker_elsewhere_is_reached_by_tls_alone(
    monkeypatch: pytest.MonkeyPatch, url: str, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("LABHARNESS_BROKER", url)
    said = say("serve", "--lab", SHORT_LINE)
    said.is_one_plain_error(*words)
    assert "secret" not in said.err
