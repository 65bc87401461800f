"""A line owner with its runs, without processes: what it writes stays, and it may die at any time.

A run writes a few records a turn and ends as its submission says; its line is then watched for some
turns until it is cold. The world counts what no crash may double: how often each run has heated.
"""

import json
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

from labharness.core.errors import LabError
from labharness.journal.chain import Record
from labharness.lab.house.orders import OwnerStatus, RunOrder

COLD_A_TURN = 0.6
"""Chance that a line which has answered is cold after one more look at it."""


class AwayOwner(LabError, ConnectionError, code="away_owner"):
    """The line owner of the world does not answer."""


def script(end: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the records of a run that ends so: kinds and bodies."""

    def state(before: str, to: str, reason: str = "why") -> tuple[str, dict[str, Any]]:
        data = {"from_state": before, "to_state": to, "reason": reason}
        return "event", {"event_type": "state_changed", "data": data}

    def closed(final: str) -> tuple[str, dict[str, Any]]:
        data = {"final_state": final, "reason": "why"}
        return "event", {"event_type": "session_closed", "data": data}

    def step(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
        for status in ("RUNNING", "COMPLETED"):
            yield "step", {"instruction": name, "status": status}

    last = {
        "guard died": GUARD_DIED,
        "task_completed": {"outputs": {"raman": 1}, "artifacts": [ARTIFACT]},
        "task_failed": {"error_code": "safety_violation", "artifacts": []},
        "task_rejected": {"reason_code": "risk_too_high", "reason_message": "too hot"},
        "event": {"data": {"final_state": "ABORTED", "reason": "asked"}},
    }
    if end == "task_rejected":
        ends = [state("PENDING", "REJECTED"), closed("REJECTED")]
        return [("submitted", {}), *ends, ("terminal", {"type": end, "payload": last[end]})]
    records = [("submitted", {}), state("PENDING", "RUNNING"), *step("heat"), *step("measure")]
    if end == "guard died":
        records += [state("RUNNING", "FAILED"), closed("FAILED")]
        return [*records, ("terminal", {"type": "task_failed", "payload": last[end]})]
    if end == "event":
        records += [state("RUNNING", "ABORTING"), state("ABORTING", "ABORTED"), closed("ABORTED")]
    elif end in FINAL:
        records += [state("RUNNING", FINAL[end]), closed(FINAL[end])]
    return [*records, ("terminal", {"type": end, "payload": last[end]})]


FINAL = {"task_completed": "COMPLETED", "task_failed": "FAILED"}
ARTIFACT = {"uri": "hcp://session-s/artifacts/map.json", "size_bytes": 9}


def message(key: str, priority: str = "normal", caller: str = "ana") -> bytes:
    """Return a submission as its caller sends it."""
    payload = {
        "capability": "grow",
        "caller_id": caller,
        "intent": "grow a film",
        "inputs": {},
        "constraints": {"priority": priority},
        "expected_output": {"required_fields": ["raman"]},
    }
    body = {
        "hcp_version": "1.0",
        "message_id": key,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "session_id": None,
        "type": "task_submit",
        "payload": payload,
    }
    return json.dumps(body).encode()


class LineWorld:
    """The line owner and the folders of its runs, as the house sees both."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.disk: dict[str, list[Record]] = {}
        self.ends: dict[str, str] = {}  # of each run, as it will be or was
        self.heated: Counter[str] = Counter()
        self.orders: list[RunOrder] = []
        self.accepted: set[str] = set()  # sessions that were accepted on receipt
        self.latched = ""
        self.asked: list[tuple[str, str]] = []  # by persons, of a run
        self.timed_out: list[str] = []  # runs that were asked to end
        self.up, self.leaving = True, False
        self.speed: float | None = None
        self._pid = 1
        self._order: RunOrder | None = None
        self._todo: list[tuple[str, dict[str, Any]]] = []
        self._warm = Random(seed)  # how long each line stays so

    # ---- the line owner's door

    def status(self) -> OwnerStatus | None:
        run_id = "" if self._order is None else self._order.run_id
        if not self.up:
            return None
        return OwnerStatus(pid=self._pid, run_id=run_id, speed=self.speed, leaving=self.leaving)

    def held(self) -> str:
        return self.latched

    def latch_reason(self) -> str:
        return self.latched

    def begin(self, order: RunOrder) -> None:
        self._must_be_up()
        if order.run_id in self.disk or self._order is not None:
            return
        self._order = order
        self.orders.append(order)
        drawn = ["task_completed", "task_completed", "task_failed", "task_rejected"]
        if order.run_id in self.accepted:
            drawn[-1] = "task_failed"
        self.ends[order.run_id] = self.random.choice(drawn)
        self._todo = script(self.ends[order.run_id])

    def ask(self, run_id: str, do: str, reason: str, by: str = "") -> None:
        self._must_be_up()
        if self._order is None or self._order.run_id != run_id:
            raise AwayOwner("it has no such run")
        if do == "time_out":
            self.timed_out.append(run_id)
            return
        if do != "abort":
            self._hear(do, by)
            return
        if not self._todo or self._ends_now:
            return  # too late: it ends as it would have
        begun = len(self.disk.get(run_id, ())) > 1
        if not begun and run_id in self.accepted:
            self.ends[run_id] = "event"
            self._todo = [*self._todo[: self._todo.index(RUN_STATE) + 1], *script("event")[-4:]]
            return
        self.ends[run_id] = "event" if begun else "aborted"
        rejected = [*script("task_rejected")[-3:-1], ("terminal", REJECTED_ABORTED)]
        self._todo = script("event")[-4:] if begun else rejected

    def confirm(self, run_id: str, step: str, by: str) -> str:
        self._must_be_up()
        if self._order is None or self._order.run_id != run_id:
            raise AwayOwner("it has no such run")
        self._hear(f"confirm {step}", by)
        return step

    def _hear(self, what: str, by: str) -> None:
        if not by:
            raise AwayOwner("it carries out what a person asks for, by name")
        self.asked.append((what, by))

    def _must_be_up(self) -> None:
        if not self.up:
            raise AwayOwner("it is away")

    # ---- the folders

    def folder(self, run_id: str) -> str:
        return run_id

    def begun(self, run_id: str) -> bool:
        return run_id in self.disk

    def records(self, run_id: str, after: int) -> list[Record]:
        return [each for each in self.disk.get(run_id, ()) if each.seq > after]

    def left(self, run_id: str) -> tuple[str, str]:
        return "", ""

    # ---- what happens by itself

    def write(self, *bodies: tuple[str, dict[str, Any]]) -> None:
        """Let the run that has the line write these records now."""
        assert self._order is not None
        written = self.disk.setdefault(self._order.run_id, [])
        for kind, body in bodies:
            written.append(Record(len(written) + 1, 0.0, kind, body, ""))

    def turn(self) -> None:
        """Let the run that has the line write some records; the last one frees the line."""
        if not self.up or self._order is None:
            return
        run_id = self._order.run_id
        written = self.disk.setdefault(run_id, [])
        for _ in range(self.random.randint(0, 3)):
            if not self._todo:  # it has answered, and is watched until it is cold
                self._order = None if self._warm.random() < COLD_A_TURN else self._order
                return
            kind, body = self._todo.pop(0)
            written.append(Record(len(written) + 1, 0.0, kind, body, ""))
            if kind == "step" and body == {"instruction": "heat", "status": "RUNNING"}:
                self.heated[run_id] += 1

    def die(self) -> None:
        """Kill the line owner: its run ends without a message, and the line is latched."""
        if self._order is not None:
            self.latched = "left armed" if self._order.run_id in self.disk else self.latched
            if self._todo:
                self.ends.pop(self._order.run_id)
                if self._order.run_id in self.disk:
                    self.ends[self._order.run_id] = "died"
            self._order = None
        self.up = False

    def kill_guard(self) -> None:
        """Kill the guard of an armed line: it trips and is latched, and its run says so itself."""
        if not self.armed or self._order is None:
            return
        self.latched = "the guard process is gone"
        if self.ends[self._order.run_id] != "event" and self._todo and not self._ends_now:
            self.ends[self._order.run_id] = "guard died"
            self._todo = [("trip", {}), *script("guard died")[-3:]]

    @property
    def _ends_now(self) -> bool:
        """Whether the run has come to its last state, and what is left says so."""
        kind, body = self._todo[0]
        return kind == "terminal" or body.get("event_type") == "session_closed"

    @property
    def armed(self) -> bool:
        """Whether a run is carried out that has a guard."""
        run_id = "" if self._order is None else self._order.run_id
        return self.up and any(each.body == RUNNING for each in self.disk.get(run_id, ()))

    def rise(self) -> None:
        """Start a line owner again."""
        self._pid += 1
        self.up = True


GUARD_DIED = {"error_code": "execution_error", "artifacts": []}  # as a lost connection (ruling 7)

REJECTED_ABORTED = {
    "type": "task_rejected",
    "payload": {"reason_code": "aborted", "reason_message": "asked"},
}

RUN_STATE = script("task_completed")[1]
RUNNING = RUN_STATE[1]
