"""Persons' agreement to one plan: asked for, given, and used once, as files of the lab's state.

A request is one JSON file that holds all that a person is shown: the compiled plan, the result of
pre-flight, requester and risk. That of a confidential task is encrypted under the key of its run.
Decisions are appended to a file beside it, and are bound to the digest of plan, envelope and lab
file: one changed byte voids them. A run that begins with an agreement uses it up:
``approvals.jsonl`` says so before the run begins, and is asked before an agreement counts.

That log only grows. A request is open while its last entry in it says that it was asked for, so
files that come back from a backup count for nothing, nor do any once the log is gone. Each line
holds the digest of the line before it: one that is changed, put in or taken out is seen. That a
whole state directory is put back as it was cannot be seen in it. So the journals of the runs, which
lie elsewhere and say under which ticket each was agreed to, are asked as well.
"""

import asyncio
import json
import os
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

from labharness.core.clock import Clock, utc_text, wall_clock_utc
from labharness.core.files.chained import BrokenChain, append_chained, read_chained
from labharness.core.files.durable import append_durably, sync_folder, write_durably
from labharness.core.vocabulary.digests import digest_of
from labharness.core.vocabulary.persons import bad_name, same_person
from labharness.core.vocabulary.texts import CodedError, Text
from labharness.journal import JournalFailed
from labharness.journal.encryption import KeyMissing, RunKey, key_of
from labharness.journal.layout import JournalEmpty
from labharness.journal.reading import read_after
from labharness.protocols.hcp.terms import Rejected
from labharness.work.admission.approval import (
    ApprovalRequest,
    Approved,
    Approver,
    PersonalApproval,
    decision_bytes,
    verify_personal,
    why_not_by,
)
from labharness.work.desk.folder import JOURNAL_NAME

LOOK_S = 1.0  # world time between two looks at what persons have said
VALID_S = 24 * 3600.0  # how long a request stands, and an agreement counts
REQUESTS_MAX = 100
DECISIONS_MAX = 20  # on one request; two persons are ever needed
TEXT_MAX = 500  # characters of a name or a reason
ID_LENGTH = 12
KEY_FILE, HIDDEN = "key_file", "encrypted"
"""In the file of a confidential request: where its key is, and all that persons are shown."""


TOLD: Final = ("requester", "capability", "risk_level")
"""Of a request, in its file in clear and in the log of its end."""

ASKED: Final = "asked"
"""In the log, the state of a request that is still open."""


class BadDecision(CodedError, ValueError, code="bad_decision"):
    """A decision cannot count; the message says why, and what would count."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of one person on one request.

    Attributes:
        digest: Digest of plan, envelope and lab file at the decision.
        ticket: Ticket of the request; another request for the same plan has another.
        account: The account in which it was typed.
        at: UTC.
        signature: Of its person's key over all of it, in hexadecimal digits; ``""`` for none.
    """

    name: str
    reason: str
    agrees: bool
    digest: str
    ticket: str
    account: str
    at: str
    signature: str = ""


@dataclass(frozen=True, slots=True)
class Pending:
    """A request that waits, and the decisions on it.

    Attributes:
        ticket: Its name in the log.
        decisions: The decisions under its ticket.
        stale: The number of decisions on an earlier request for the same; they count no more.
    """

    id: str
    asked_at: str
    request: ApprovalRequest
    ticket: str
    decisions: tuple[Decision, ...]
    stale: int

    @property
    def used_up(self) -> str:
        """Return a text on decisions that count no more, to follow the missing ones; or ``""``."""
        said = f"; {self.stale} said so of an earlier request for it, which counts no more"
        return said if self.stale else ""


@dataclass(frozen=True, slots=True)
class _Entry:
    """The last entry of a request in the log.

    Attributes:
        became: `ASKED`, or the way it was closed.
        at: When, UTC.
        request: Digest of the request; ``""`` for a closed one.
        ticket: Digest of the line that opened it, which no other line has; ``""`` for a closed one.
    """

    became: str
    at: str
    request: str = ""
    ticket: str = ""


@dataclass(eq=False)
class ApprovalFolder:
    """The requests of one lab and the decisions of persons on them.

    Attributes:
        state_dir: The lab's state directory.
        now: World time.
        approvers: The persons who may approve, with their keys; ``None`` takes names on trust.
        key: Encrypts the request of a confidential run.
        runs: The folder of the runs, whose journals say which agreements they have used.
    """

    state_dir: Path
    now: Callable[[], datetime] = wall_clock_utc
    approvers: Mapping[str, Approver] | None = None
    key: RunKey | None = None
    runs: Path | None = None

    @property
    def _folder(self) -> Path:
        return self.state_dir / "approvals"

    @property
    def _log(self) -> Path:
        return self.state_dir / "approvals.jsonl"

    def ask(self, request: ApprovalRequest) -> str:
        """Write a request that persons can find; return its id.

        The same plan at the same risk asked for by the same person has the same id, so that
        later decisions on it still count.

        Raises:
            OSError: The folder cannot be written.
            BadDecision: Too many requests wait already, or the log cannot be read.
        """
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._end_what_is_old()
        bound, at = _bound(request), utc_text(self.now())
        name = _id(bound)
        waiting = {each.id for each in self.pending()}
        if name not in waiting and len(waiting) >= REQUESTS_MAX:
            raise BadDecision("approvals.full", most=REQUESTS_MAX)
        known = self._read_log().get(name)
        is_open = known is not None and bool(known.ticket) and known.request == bound
        if known is None or not is_open or self._used_by(known.ticket):
            append_chained(self._log, {"at": at, "id": name, "became": ASKED, "request": bound})
        body = {"asked_at": at, **self._stored(name, request)}
        write_durably(self._path(name), json.dumps(body, ensure_ascii=False, indent=1))
        return name

    def _stored(self, name: str, request: ApprovalRequest) -> dict[str, object]:
        """Return what the file says of a request; of a confidential one who asks for what."""
        whole = asdict(request)
        if self.key is None:
            return whole
        hidden = self.key.encrypt(f"approval {name}", json.dumps(whole).encode())
        told = {each: whole[each] for each in TOLD}
        place = str(self.key.place.absolute())
        return {**told, KEY_FILE: place, HIDDEN: b64encode(hidden).decode()}

    def pending(self) -> tuple[Pending, ...]:
        """Return the requests that wait, the oldest first; older than a day they wait no more.

        Raises:
            BadDecision: The log cannot be read.
            PermissionError: This account may not see the requests.
        """
        found = []
        log = self._read_log()
        for path in self._requests():
            with suppress(BadDecision):
                found.append(self._pending(path.stem, log))
        return tuple(sorted(found, key=lambda each: each.asked_at))

    def read(self, name: str) -> Pending:
        """Return one request.

        Raises:
            BadDecision: There is no such request, it is closed, its file is damaged, or the log
                cannot be read.
        """
        return self._pending(name, self._read_log())

    def run_of(self, name: str) -> Path | None:
        """Return the folder of the confidential run that asks; ``None`` where a request is open."""
        try:
            place = json.loads(self._path(name).read_text("utf-8")).get(KEY_FILE)
        except (OSError, ValueError, AttributeError):
            return None
        return Path(place).parent if isinstance(place, str) else None

    def _pending(self, name: str, log: Mapping[str, _Entry]) -> Pending:
        path = self._path(name)
        entry = log.get(name)
        try:
            body = json.loads(path.read_text("utf-8"))
            asked_at = body.pop("asked_at")
            body = _read_stored(name, body)
            listed = {name: tuple(body[name]) for name in ("risk_reasons", "hazards")}
            request = ApprovalRequest(**{**body, **listed})
            old, bound = _age_s(asked_at, self.now()) > VALID_S, _bound(request)
        except FileNotFoundError:
            raise BadDecision(self._unknown(name)) from None
        except KeyMissing as why:
            raise BadDecision(str(why)) from None
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as why:
            raise BadDecision("file.unreadable", path=str(path), why=str(why)) from None
        if old:
            raise BadDecision(self._unknown(name))
        if entry is None or not entry.ticket:
            closed = Text("approvals.never")
            if entry is not None:
                closed = Text("approvals.became", became=entry.became, at=entry.at)
            kept = str(self._log)
            raise BadDecision("approvals.closed", path=str(path), log=kept, closed=closed)
        if bound != entry.request or _id(bound) != name:
            raise BadDecision("approvals.other_plan", path=str(path))
        said = self._decisions(name)
        counts = tuple(each for each in said if each.ticket == entry.ticket)
        return Pending(name, asked_at, request, entry.ticket, counts, len(said) - len(counts))

    def _read_log(self) -> dict[str, _Entry]:
        """Return the last entry of each request, by its id."""
        try:
            return {
                str(body.get("id")): _entry(body, line) for body, line in read_chained(self._log)
            }
        except BrokenChain as why:
            path = str(self._log)
            raise BadDecision("approval_log.broken", path=path, number=why.number) from None
        except OSError as why:
            reason = why.strerror or str(why)
            raise BadDecision("file.unreadable", path=str(self._log), why=reason) from None

    def _end_what_is_old(self) -> None:
        for path in self._requests():
            with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
                asked_at = json.loads(path.read_text("utf-8"))["asked_at"]
                if _age_s(asked_at, self.now()) > VALID_S:
                    self.settle(path.stem, "expired: nobody used it within a day")

    def decide(
        self,
        name: str,
        person: str,
        reason: str,
        *,
        agrees: bool,
        account: str,
        sign: Callable[[bytes], bytes] | None = None,
    ) -> Pending:
        """Record the decision of a person on a request.

        Args:
            name: The request's id.
            person: Its name.
            reason: Why.
            agrees: Whether it approves.
            account: The account in which it was typed.
            sign: Signs with the person's key; a refusal takes none.

        Raises:
            BadDecision: No such request; no name or reason, or a name that misleads; the requester
                approves, or a person who may not, or without the key; too many said.
            OSError: It cannot be written.
        """
        for what, text in (("name", person), ("reason", reason)):
            if not text.strip() or len(text) > TEXT_MAX:
                raise BadDecision("approvals.takes", what=what, most=TEXT_MAX)
        if why := bad_name(person):
            raise BadDecision(why)
        pending = self.read(name)
        request = pending.request
        if len(pending.decisions) >= DECISIONS_MAX:
            raise BadDecision("approvals.decided", most=DECISIONS_MAX, name=name)
        if agrees and same_person(person, request.requester):
            code = "approvals.own" if person == request.requester else "approvals.own_as"
            raise BadDecision(code, requester=request.requester, person=person)
        at = utc_text(self.now())
        decision = Decision(person, reason, agrees, request.digest(), pending.ticket, account, at)
        if sign is not None:
            signature = sign(decision_bytes(asdict(decision))).hex()
            decision = replace(decision, signature=signature)
        elif agrees and self.approvers is not None:
            raise BadDecision("approvers.needs_key", name=person)
        if agrees and (why := self._why_not(decision, request)):
            raise BadDecision(why)
        append_durably(self._said(name), json.dumps(asdict(decision)))
        return self.read(name)

    def verdict(self, name: str, request: ApprovalRequest) -> Approved | Decision | str:
        """Return the agreement, the refusal, or the missing decisions.

        Args:
            name: The request's id.
            request: As the asking process knows it, not as the file has it.
        """
        pending = self.read(name)
        for each in pending.decisions:
            if not each.agrees:
                return each
        agreed = [
            PersonalApproval(each.name, each.reason, each.digest)
            for each in pending.decisions
            if 0.0 <= _age_s(each.at, self.now()) <= VALID_S and not self._why_not(each, request)
        ]
        found = verify_personal(
            agreed,
            digest=request.digest(),
            requester=request.requester,
            risk_level=request.risk_level,
        )
        if not isinstance(found, Approved):
            return found.reason
        if run := self._used_by(pending.ticket):
            return Text("approvals.used", run=run)
        return replace(found, agreement=pending.ticket)

    def _used_by(self, ticket: str) -> str:
        """Return the run that has used what was said under a ticket, or may have; ``""`` for none.

        Raises:
            OSError: The folder of the runs cannot be read.
        """
        if self.runs is None or not self.runs.is_dir():
            return ""
        since = self.now() - timedelta(seconds=2 * VALID_S)  # a day more, for clocks that are set
        for folder in sorted(self.runs.iterdir()):
            journal = folder / JOURNAL_NAME
            if _written_s(journal) >= since.timestamp() and _has(journal, ticket):
                return folder.name
        return ""

    def _why_not(self, decision: Decision, request: ApprovalRequest) -> str:
        """Return why an agreement is not that of its person; ``""`` where it is."""
        if self.approvers is None:
            return ""
        return why_not_by(
            self.approvers,
            decision.name,
            risk_level=request.risk_level,
            fields=asdict(decision),
            signature=decision.signature,
        )

    def settle(self, name: str, became: str) -> None:
        """Close a request: its end is on the disk before its files are removed.

        Raises:
            BadDecision: The log cannot be read.
            OSError: The log cannot be written.
        """
        path = self._path(name)
        try:
            body = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError):
            body = {}
        line = {
            "at": utc_text(self.now()),
            "id": name,
            "became": became,
            **{each: body.get(each) for each in TOLD},
            "decisions": [asdict(each) for each in self._decisions(name)],
        }
        append_chained(self._log, line)
        self._said(name).unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        sync_folder(self._folder)

    def _decisions(self, name: str) -> tuple[Decision, ...]:
        try:
            lines = self._said(name).read_text("utf-8").splitlines()
        except OSError:
            return ()
        found = []
        for line in lines[: 2 * DECISIONS_MAX]:
            # a line that a power cut shortened, or of another author, does not count
            with suppress(ValueError, TypeError, RecursionError):
                decision = Decision(**json.loads(line))
                _age_s(decision.at, self.now())
                found.append(decision)
        return tuple(found)

    def _requests(self) -> list[Path]:
        try:
            names = os.listdir(self._folder)  # a glob finds nothing where it may not look
        except FileNotFoundError:
            return []
        return [self._folder / each for each in sorted(names) if each.endswith(".json")]

    def _path(self, name: str) -> Path:
        if len(name) != ID_LENGTH or not set(name) <= set("0123456789abcdef"):
            raise BadDecision(self._unknown(name))
        return self._folder / f"{name}.json"

    def _said(self, name: str) -> Path:
        return self._path(name).with_suffix(".decisions")

    def _unknown(self, name: str) -> str:
        waiting = ", ".join(path.stem for path in self._requests())
        return Text("approvals.none_waits", name=name, waiting=waiting or "none")


@dataclass(eq=False)
class Persons:
    """Waits for persons to agree to a plan, by looking at the folder.

    Attributes:
        folder: The folder of the requests.
        clock: Lab time; its loop runs while persons think.
        wait_s: World time to wait for, in which virtual time stands; 0 looks once.
        tell: Called with the id as soon as the request is there to be found.
        lab_option: The option of a command for this lab, for advice: `` --lab FILE``.
        sign_again: The command that signs the lab's standing approval; ``""`` for none.
    """

    folder: ApprovalFolder
    clock: Clock
    wait_s: float
    tell: Callable[[str], None]
    lab_option: str = ""
    sign_again: str = ""

    async def decide(self, request: ApprovalRequest) -> Approved | Rejected:
        """Wait for an agreement, a refusal, or the end of the time."""
        expired = partial(Rejected, "approval_expired", assessed_risk_level=request.risk_level)
        try:
            name = self.folder.ask(request)
        except (OSError, BadDecision) as why:
            return expired(f"Nobody could be asked: {why}")
        self.tell(name)
        try:
            return await self._answer(name, request)
        except BadDecision as why:
            return expired(f"No agreement can count: {why}")
        except OSError as why:
            return expired(f"No agreement can count: what became of it cannot be kept: {why}")
        except asyncio.CancelledError:
            with suppress(OSError, BadDecision):
                self.folder.settle(name, "withdrawn: the run was aborted")
            raise

    async def _answer(self, name: str, request: ApprovalRequest) -> Approved | Rejected:
        level, looks = request.risk_level, int(self.wait_s / LOOK_S)
        for look in range(looks + 1):
            verdict = self.folder.verdict(name, request)
            if isinstance(verdict, Approved):
                self.folder.settle(name, f"used by session {request.session_id}")
                return verdict
            if isinstance(verdict, Decision):
                self.folder.settle(name, f"refused by {verdict.name}")
                said = f"{verdict.name} refused it: {verdict.reason}"
                return Rejected("approval_denied", said, level)
            if look < looks:
                await self.clock.stand(LOOK_S)
        if looks:
            self.folder.settle(name, f"expired: nobody agreed within {self.wait_s:g} s")
            why = f"Nobody approved it within {self.wait_s:g} s: {request.why}"
            return Rejected("approval_expired", why, level)
        why = f"No approval covers this task: {request.why}{self.folder.read(name).used_up}"
        # denied is what a person has denied
        return Rejected("approval_expired", why, level, self._way_out(name, request))

    def _way_out(self, name: str, request: ApprovalRequest) -> str:
        if request.edited and self.sign_again:
            return Text("approvals.sign", command=self.sign_again)
        return Text("approvals.agree", name=name, lab=self.lab_option)


def _read_stored(name: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return the whole of a request, as its file has it.

    Raises:
        KeyMissing: It is confidential, and its key cannot be had.
    """
    if KEY_FILE not in body:
        return body
    place = Path(str(body[KEY_FILE]))
    key = key_of(place)
    if key is None:
        raise KeyMissing(Text("encrypted.destroyed", path=str(place.parent), name=place.name))
    whole = json.loads(key.decrypt(f"approval {name}", b64decode(body[HIDDEN], validate=True)))
    return dict(whole)


def _entry(body: Mapping[str, Any], line: bytes) -> _Entry:
    became, at = str(body.get("became")), str(body.get("at"))
    if became != ASKED:
        return _Entry(became, at)
    return _Entry(became, at, str(body.get("request")), digest_of(line))


def _bound(request: ApprovalRequest) -> str:
    """Return the digest of content, risk and requester of a request: computed, never read."""
    asked = f"{request.digest()}\n{request.risk_level}\n{request.requester}"
    return digest_of(asked.encode())


def _id(bound: str) -> str:
    """Return the name that people type; nothing is compared by it alone."""
    return bound.removeprefix("sha256:")[:ID_LENGTH]


def _age_s(at: str, now: datetime) -> float:
    return (now - datetime.fromisoformat(at).astimezone(UTC)).total_seconds()


def _written_s(journal: Path) -> float:
    """Return when a journal was last written; that of a killed run ends in the file beside it."""
    found = 0.0
    for path in (journal, journal.with_name(f"{journal.name}-wal")):
        with suppress(OSError):
            found = max(found, path.stat().st_mtime)
    return found


def _has(journal: Path, ticket: str) -> bool:
    try:
        ways = (each for each in read_after(journal, 0) if each.kind in ("approved", "terminal"))
        first = next(ways, None)
    except JournalEmpty:
        return False
    except JournalFailed:  # it may have used it: a person agrees once more
        return True
    return first is not None and first.body.get("agreement") == ticket
