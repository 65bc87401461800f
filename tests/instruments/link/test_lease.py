"""One machine a TCP instrument: stated as exclusive, or leased; unstated it is not driven."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import edited_lab, say
from labharness.core.files.named import open_own
from labharness.instruments.link.identity import LinkAddress, network_host
from labharness.lab import LabPlan, read_lab
from labharness.lab.config.lab_file import BadLabFile
from labharness.lab.config.lease import Lease
from labharness.lab.config.lock import LineBusy
from platforms import unix

pytestmark = unix

HOLDS = (
    "import sys; from pathlib import Path; from labharness.lab.config.lease import Lease; "
    "lease = Lease(Path(sys.argv[1]), 'Ada'); print('held', flush=True); sys.stdin.read()"
)


def lab(folder: Path, more: str = "", host: str = "192.0.2.7") -> Path:
    """The short line with its gauge behind another machine (RFC 5737: no such one)."""
    folder.mkdir(exist_ok=True)
    row = f'name = "vacuum"\nlink = "tcp"\nhost = "{host}"\nport = 4001\n{more}'
    return edited_lab(folder, 'name = "vacuum"\nlink = "loopback"', row)


def plan(folder: Path, more: str) -> LabPlan:
    found = read_lab(lab(folder, more))
    found.make_state_dir()
    return found


@pytest.mark.promise(36)
def test_a_line_over_a_network_that_nobody_claims_is_not_armed(tmp_path: Path) -> None:
    path = lab(tmp_path)
    attend = ("set", "argon.setpoint", 300, "sccm", "--attend", "--out", tmp_path / "out")
    for words in (("lab", "check", "--lab"), ("arm",), ("doctor", "--lab"), (*attend, "--lab")):
        said = say(*words, path)
        assert said.code in (1, 64), said
        assert "leads to 192.0.2.7 over a network" in said.out + said.err
        assert "exclusive = true" in said.out + said.err
    assert not (tmp_path / "out" / "journal.sqlite").exists()


@pytest.mark.parametrize(
    ("host", "more"),
    [
        ("192.0.2.7", "exclusive = true"),
        ("192.0.2.7", 'lease = "/share/gauge.lease"'),
        ("127.0.0.1", ""),
    ],
)
def test_a_port_that_is_claimed_or_on_this_machine_is_no_finding(
    tmp_path: Path, host: str, more: str
) -> None:
    assert read_lab(lab(tmp_path, more, host)).unclaimed() == ()


@pytest.mark.parametrize("more", ["exclusive = true", 'lease = "/share/x"'])
def test_a_port_on_this_machine_takes_no_claim(tmp_path: Path, more: str) -> None:
    with pytest.raises(BadLabFile, match="over no network"):
        read_lab(lab(tmp_path, more, "localhost"))


def test_a_lease_is_a_whole_path(tmp_path: Path) -> None:
    with pytest.raises(BadLabFile, match="lease"):
        read_lab(lab(tmp_path, 'lease = "gauge.lease"'))


@pytest.mark.parametrize(
    ("link", "host"),
    [
        (LinkAddress(port="a", url="ws://192.0.2.7:25010"), "192.0.2.7"),
        (LinkAddress(port="a", url="ws://[::1]:25010"), ""),
        (LinkAddress(port="a", resource="TCPIP0::192.0.2.7::inst0::INSTR"), "192.0.2.7"),
        (LinkAddress(port="a", resource="TCPIP0::127.0.0.1::5025::SOCKET"), ""),
        (LinkAddress(port="a", resource="GPIB0::12::INSTR"), ""),
        (LinkAddress(port="a", path="/dev/ttyUSB0"), ""),
    ],
)
def test_every_link_over_a_network_is_one(link: LinkAddress, host: str) -> None:
    assert network_host(link) == host


@pytest.mark.promise(36)
def test_who_holds_the_lease_on_another_machine_keeps_this_one_from_driving(
    tmp_path: Path,
) -> None:
    file = tmp_path / "gauge.lease"
    found = plan(tmp_path / "lab", f'lease = "{file}"')
    command = [sys.executable, "-c", HOLDS, str(file)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(LineBusy) as why:
            found.lock(tmp_path)
        assert f"{file} is leased by Ada on " in str(why.value)
        found.lock(does="reads the line").release()
        other.kill()
    lock = found.lock(tmp_path)
    with pytest.raises(LineBusy):
        found.lock(tmp_path)
    lock.release()
    found.lock(tmp_path).release()


def test_a_share_that_does_not_answer_is_waited_for_no_longer_than_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()
    opened: list[int] = []

    def slowly(path: Path, flags: int) -> int:
        answers.wait()
        opened.append(open_own(path, flags))
        return opened[-1]

    monkeypatch.setattr("labharness.lab.config.lease.LEASE_S_MAX", 0.1)
    monkeypatch.setattr("labharness.lab.config.lease.open_own", slowly)
    found = plan(tmp_path / "lab", f'lease = "{tmp_path / "gauge.lease"}"')
    outcome: list[str] = []

    def ask() -> None:
        try:
            found.lock(tmp_path)
        except OSError as why:
            outcome.append(str(why))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(10.0)
    answers.set()
    assert outcome
    assert "does not answer within 0.1 s" in outcome[0]


@pytest.mark.parametrize("put", [os.mkfifo, os.mkdir])
def test_a_lease_that_is_no_file_is_refused(tmp_path: Path, put: Callable[[Path], None]) -> None:
    put(tmp_path / "lease")
    with pytest.raises(OSError, match=r"no file|Is a directory"):
        Lease(tmp_path / "lease", "Ada")
