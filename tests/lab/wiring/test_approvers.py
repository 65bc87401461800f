"""A person approves with a key of its own; a name, an account or a copy is not enough."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from commands import ROOT, say
from labharness.core.files.signing_key import BadKey, make_key, read_key, signed_by
from labharness.lab import read_lab
from labharness.lab.wiring.approvals import ApprovalFolder, BadDecision, Decision
from labharness.work.admission.approval import (
    Approved,
    Approver,
    BadApprovers,
    decision_bytes,
    read_approvers,
)
from platforms import unix
from requested import request

ADA, BEN = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LAB = ROOT / "envelopes" / "labharness_envelopes" / "labs" / "annealing_furnace"


def person(name: str, key: Ed25519PrivateKey, **more: Any) -> Approver:
    rights: dict[str, Any] = {"risk_max": "R5", "account": "", **more}
    return Approver(name, key.public_key().public_bytes_raw(), **rights)


def folder(path: Path, *approvers: Approver) -> ApprovalFolder:
    return ApprovalFolder(path, lambda: NOON, {each.name: each for each in approvers})


def agree(
    where: ApprovalFolder, name: str, who: str, key: Ed25519PrivateKey | None, account: str = "a"
) -> None:
    sign = None if key is None else key.sign
    where.decide(name, who, "looked at it", agrees=True, account=account, sign=sign)


@pytest.mark.promise(69)
def test_an_agreement_counts_with_the_key_of_its_person(tmp_path: Path) -> None:
    where, asked = folder(tmp_path, person("Ada", ADA)), request(risk_level="R4")
    name = where.ask(asked)
    for who, key, says in (
        ("Ada", None, "--key FILE"),
        ("Ada", BEN, "not signed with the key of 'Ada'"),
        ("Ben", BEN, "none of the approvers of this lab: Ada"),
    ):
        with pytest.raises(BadDecision, match=says):
            agree(where, name, who, key)
    assert isinstance(where.verdict(name, asked), str)
    agree(where, name, "Ada", ADA)
    assert isinstance(where.verdict(name, asked), Approved)


@pytest.mark.promise(69)
@pytest.mark.parametrize(
    "forge",
    [
        lambda said: {**said, "name": "Ben"},
        lambda said: {**said, "digest": "sha256:another plan"},
        lambda said: {**said, "ticket": "another request"},
        lambda said: {**said, "at": "2026-01-01T11:00:00.000Z"},
        lambda said: {**said, "account": "root"},
        lambda said: {**said, "signature": ""},
        lambda said: {**said, "signature": said["signature"][:-2] + "ff"},
        lambda said: {**said, "signature": "no digits"},
        lambda said: {**said, "agrees": True, "reason": "better"},
    ],
)
def test_a_decision_that_was_written_by_hand_does_not_count(
    tmp_path: Path, forge: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    where, asked = folder(tmp_path, person("Ada", ADA), person("Ben", BEN)), request()
    name = where.ask(asked)
    agree(where, name, "Ada", ADA)
    path = tmp_path / "approvals" / f"{name}.decisions"
    said = json.loads(path.read_text("utf-8"))
    forged = forge(dict(said))
    assert forged != said
    path.write_text(json.dumps(forged) + "\n", "utf-8")
    assert isinstance(where.verdict(name, asked), str)
    path.write_text(json.dumps(said) + "\n", "utf-8")
    assert isinstance(where.verdict(name, asked), Approved)


def test_risk_and_account_of_an_approver_bound_what_it_may_approve(tmp_path: Path) -> None:
    where = folder(tmp_path, person("Ada", ADA, risk_max="R3"), person("Ben", BEN, account="ben"))
    name = where.ask(request(risk_level="R4"))
    with pytest.raises(BadDecision, match="'Ada' may approve up to R3, not R4"):
        agree(where, name, "Ada", ADA)
    with pytest.raises(BadDecision, match="in the account 'ben' alone"):
        agree(where, name, "Ben", BEN, account="ada")
    agree(where, name, "Ben", BEN, account="ben")


def test_anybody_may_refuse(tmp_path: Path) -> None:
    where, asked = folder(tmp_path, person("Ada", ADA)), request()
    name = where.ask(asked)
    where.decide(name, "a passer-by", "it smells", agrees=False, account="a")
    assert isinstance(where.verdict(name, asked), Decision)


@pytest.mark.promise(69)
@pytest.mark.parametrize("field", ["name", "reason", "digest", "ticket", "account", "at", "agrees"])
@given(other=st.text(max_size=8).filter(lambda text: text != "as it was"))
def test_a_signature_is_of_one_decision(field: str, other: str) -> None:
    said = dict.fromkeys(("name", "reason", "digest", "ticket", "account", "at"), "as it was")
    signature = ADA.sign(decision_bytes(said)).hex()
    assert signed_by(person("Ada", ADA).key.hex(), signature, decision_bytes(said))
    assert not signed_by(
        person("Ada", ADA).key.hex(), signature, decision_bytes({**said, field: other})
    )
    assert not signed_by(person("Ada", BEN).key.hex(), signature, decision_bytes(said))


KEY = "ab" * 32


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[approvers.Ada]\nkey = "12"', "64 hexadecimal digits"),
        (f'[approvers.Ada]\nkey = "{KEY}"\n[approvers.Ben]\nkey = "{KEY}"', "two persons"),
        (f'[approvers.Ada]\nkey = "{KEY}"\nrisk = "R4"', "did you mean risk_max"),
        (f'[approvers.Ada]\nkey = "{KEY}"\nrisk_max = "R9"', "R9"),
        (f'[approvers."A\u0434a"]\nkey = "{KEY}"', "several scripts"),
        ("approvers = 3", "approvers"),
    ],
)
def test_a_file_of_approvers_is_strict(text: str, says: str) -> None:
    with pytest.raises(BadApprovers, match=says):
        read_approvers(text)


@unix  # who may read a file is a matter of its account there
def test_a_key_opens_with_its_passphrase_alone(tmp_path: Path) -> None:
    path = tmp_path / "ada.key"
    with pytest.raises(BadKey, match="at least 8 characters"):
        make_key(path, "short")
    public = make_key(path, "correct horse")
    assert path.stat().st_mode & 0o077 == 0
    assert read_key(path, "correct horse").public_key().public_bytes_raw() == public
    with pytest.raises(BadKey, match="passphrase does not fit"):
        read_key(path, "correct house")
    with pytest.raises(BadKey, match="File exists"):
        make_key(path, "correct horse")
    with pytest.raises(BadKey, match="No such file"):
        read_key(tmp_path / "none", "correct horse")


def test_a_person_makes_a_key_and_the_lab_knows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LABHARNESS_PASSPHRASE", "correct horse")
    key = tmp_path / "ada.key"
    made = say("approvals", "key", "--name", "Ada", "--out", key)
    assert made.code == 0, made
    copytree(LAB, tmp_path / "lab")
    lab = tmp_path / "lab" / "lab.toml"
    row = made.out.split("\n", 1)[1]
    (tmp_path / "lab" / "approvers.toml").write_text(row, "utf-8")
    lab.write_text(lab.read_text("utf-8").replace("[lab]", '[lab]\napprovers = "approvers.toml"'))
    asked = ApprovalFolder(read_lab(lab).state_dir)
    name = asked.ask(request())
    words = ("approvals", "approve", name, "--name", "Ada", "--reason", "seen", "--lab", lab)
    refused = say(*words)
    assert (refused.code, "--key FILE" in refused.err) == (1, True), refused
    monkeypatch.setenv("LABHARNESS_PASSPHRASE", "wrong horse")
    assert "passphrase does not fit" in say(*words, "--key", key).err
    monkeypatch.setenv("LABHARNESS_PASSPHRASE", "correct horse")
    assert say(*words, "--key", key).code == 0
    assert asked.read(name).decisions[0].signature
    row = row.replace("key =", "keys =")
    (tmp_path / "lab" / "approvers.toml").write_text(row, "utf-8")
    wrong = say("approvals", "list", "--lab", lab)
    assert wrong.code == 64
    assert "did you mean key" in wrong.err


def test_an_agreement_without_a_signature_is_as_before_where_names_are_trusted(
    tmp_path: Path,
) -> None:
    where, asked = ApprovalFolder(tmp_path, lambda: NOON), request()
    name = where.ask(asked)
    agree(where, name, "Ada", None)
    (said,) = where.read(name).decisions
    assert asdict(said) == asdict(replace(said, signature=""))
    assert isinstance(where.verdict(name, asked), Approved)
