"""``labharness broker``: the accounts, rights and bounds that a lab needs on RabbitMQ."""

import argparse
import getpass
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from labharness.core.clock import Chance
from labharness.core.files.tables import read_toml
from labharness.core.vocabulary.texts import Text
from labharness.faces.cli import EXIT_COMPLETED, EXIT_FAILED
from labharness.faces.cli.brokers import own_text, parts_of, stays_here, tls_of
from labharness.faces.cli.show import BadUse, chosen_lab, counted, say, say_each
from labharness.faces.service import rights
from labharness.faces.service.management import Management
from labharness.faces.service.queue_kinds import kind_differences
from labharness.lab.config.lab_facts import lab_facts_of

MANAGEMENT: Final = "LABHARNESS_MANAGEMENT"
"""The variable with the address of the management interface, and the administrator's password."""


def broker_setup(chosen: argparse.Namespace) -> int:
    """Write all that is missing or different; accounts that exist keep their passwords.

    The virtual host is made by itself: one that is written again among the definitions loses its
    description, and in some versions its default queue type.
    """
    parties = _parties(chosen)
    if chosen.print:
        say_each(rights.control_lines(parties, quorum=chosen.quorum))
        return EXIT_COMPLETED
    management = _management(chosen)
    found = management.definitions()
    known = {each["name"]: str(each.get("password_hash", "")) for each in found["users"]}
    hashes = {name: each for name, each in known.items() if name in parties.users}
    given = {} if chosen.passwords is None else _passwords(Path(chosen.passwords), parties.users)
    for user in parties.users:
        if user in given or user not in hashes:
            password = given.get(user) or _asked(Text("broker.ask_user", name=user), user)
            hashes[user] = rights.hashed(password, Chance(None).entropy(rights.SALT_BYTES))
    kinds = management.kinds(str(found.get("rabbit_version", "")))
    wanted = kinds.has_quorum(asked=chosen.quorum)
    is_new = all(each["name"] != rights.VHOST for each in found["vhosts"])
    if is_new or kinds.may_change(asked=chosen.quorum):
        management.keep_virtual_host(quorum=wanted)
    if is_new and management.account not in parties.users:
        management.leave()
    rows = rights.definitions(parties, hashes, quorum=wanted)
    management.write({kind: each for kind, each in rows.items() if kind != "vhosts"})
    return _check(management, parties, quorum=chosen.quorum)


def broker_check(chosen: argparse.Namespace) -> int:
    """Print each difference; return 1 if there is one."""
    parties = _parties(chosen)
    return _check(_management(chosen), parties, quorum=chosen.quorum)


def _parties(chosen: argparse.Namespace) -> rights.Parties:
    """Return the accounts of a lab.

    Raises:
        BadUse: The lab names no callers, or its own account is one of them.
    """
    plan = chosen_lab(chosen.lab)
    callers = lab_facts_of(plan).callers
    lab_id = plan.file.lab.id
    account = chosen.account or lab_id
    if callers is None:
        raise BadUse("broker.no_callers", path=str(plan.path))
    if account in callers:
        raise BadUse("broker.own_account", name=account)
    return rights.Parties(lab_id, account, tuple(callers), not chosen.callers_passive)


def _check(management: Management, parties: rights.Parties, *, quorum: bool) -> int:
    """Print each difference.

    Args:
        management: The broker.
        parties: The lab and its callers.
        quorum: A person wants quorum queues; in a cluster they are wanted anyway.
    """
    has = management.definitions()
    kinds = management.kinds(str(has.get("rabbit_version", "")))
    found = [
        *rights.differences(parties, has, quorum=kinds.has_quorum(asked=quorum)),
        *kind_differences(parties, kinds, asked=quorum),
    ]
    say_each(found)
    as_it_should = Text("broker.as_it_should", users=list(parties.users))
    say(counted(len(found)) if found else as_it_should)
    return EXIT_FAILED if found else EXIT_COMPLETED


def _passwords(path: Path, users: Iterable[str]) -> Mapping[str, str]:
    """Read the file of passwords: ``account = "password"``, a line each.

    Raises:
        BadUse: Others may read the file, or a line names another account, or no password.
        BadTable: It is not TOML.
    """
    found = read_toml(own_text(path), str(path))
    for name, each in found.items():
        if name not in users or not isinstance(each, str) or not each:
            raise BadUse("broker.bad_password", path=str(path), name=name, known=list(users))
    return found


def _asked(question: str, name: str) -> str:
    """Ask for a password, unseen.

    Raises:
        BadUse: Standard input is not a terminal, or the answer is empty.
    """
    password = getpass.getpass(f"{question}: ") if sys.stdin.isatty() else ""
    if not password:
        raise BadUse("broker.no_password", name=name)
    return password


def _management(chosen: argparse.Namespace) -> Management:
    """Return the management interface that a command names.

    Raises:
        BadUse: None is named, its address holds a password that all accounts of this machine can
            read, or it would send one in clear to another machine.
    """
    url = chosen.management or os.environ.get(MANAGEMENT, "")
    parts = parts_of(url)
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or not parts.username:
        raise BadUse("broker.bad_url", url=url.rpartition("@")[2] or "-", name=MANAGEMENT)
    if chosen.management and parts.password is not None:
        raise BadUse("broker.password_shown", name=MANAGEMENT)
    if parts.scheme == "http" and not stays_here(host):
        raise BadUse("broker.in_clear", host=host)
    account = unquote(parts.username)
    password = unquote(parts.password or "") or _asked(
        Text("broker.ask_administrator", name=account), account
    )
    where = parts.netloc.rpartition("@")[2]
    if chosen.ca is not None and parts.scheme == "http":
        raise BadUse("broker.no_tls")
    tls = None if chosen.ca is None else tls_of(chosen.ca)
    return Management(f"{parts.scheme}://{where}", account, password, tls)
