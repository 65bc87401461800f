"""Lock and latch by port: whichever file, account or shell leads to an instrument finds them."""

import json
import os
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from commands import COMMAND, edited_lab, say
from guard_rig import ON, GuardBench, bench, until
from labharness.core.vocabulary import Cause, Trip
from labharness.instruments.link.identity import BY_ID, LinkAddress, LinkIdentity, identify
from labharness.lab import LabPlan, read_lab
from labharness.lab.config.lock import LineBusy, LineLock, owner_elsewhere
from labharness.safety.guard import Latch, LatchUnreadable, port_records
from labharness.safety.guard.latch import LatchedElsewhere
from labharness.safety.guard.port_records import (
    GUARD,
    LEFT_ARMED,
    LINE,
    PortLatch,
    PortLock,
    PortTaken,
    clear_ports,
    who_holds,
)
from platforms import unix

pytestmark = unix

HOT = Trip(Cause.OVER_TEMPERATURE, "stop", "furnace.temperature", 960.0, 1.0, "960 degC")
RESET = "labharness reset --name NAME --reason REASON --lab /first/lab.toml"


@pytest.fixture
def address() -> Iterator[LinkAddress]:
    master, slave = os.openpty()
    yield LinkAddress(port="heat", path=os.ttyname(slave))
    os.close(master)
    os.close(slave)


def latch_of(folder: Path, address: LinkAddress) -> Latch:
    folder.mkdir(exist_ok=True)
    return Latch(folder / "latch.json", PortLatch([address], folder, RESET))


# ---- what an address is called


@pytest.mark.promise(36)
def test_a_device_is_the_same_by_whatever_name_it_is_reached(
    tmp_path: Path, address: LinkAddress
) -> None:
    (tmp_path / "by-id").symlink_to(address.path)
    (tmp_path / "twice").symlink_to(tmp_path / "by-id")
    again = identify(LinkAddress(port="oven", path=str(tmp_path / "twice")))
    assert again.lock_keys == identify(address).lock_keys
    assert again.latch_keys == identify(address).latch_keys
    assert again.port == "oven"


def test_a_pseudo_terminal_that_is_made_anew_is_another_instrument() -> None:
    found = set()
    for _ in range(3):
        master, slave = os.openpty()
        found |= {identify(LinkAddress(port="heat", path=os.ttyname(slave))).latch_keys}
        os.close(master)
        os.close(slave)
        time.sleep(0.02)  # two ticks of the clock that stamps files
    assert len(found) == 3, "though the system gives their numbers again"


def test_the_latch_of_an_adapter_hangs_on_its_own_name_and_not_on_the_order_of_plugging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "usb-FTDI_A1").symlink_to("/dev/null")
    monkeypatch.setattr("labharness.instruments.link.identity.BY_ID", tmp_path)
    found = identify(LinkAddress(port="heat", path="/dev/null"))
    assert found.lock_keys == ("device-1-3",)
    assert found.latch_keys == ("serial-usb-FTDI_A1",)
    (tmp_path / "usb-FTDI_A1").unlink()
    gone = identify(LinkAddress(port="heat", path=str(tmp_path / "usb-FTDI_A1")))
    assert gone.latch_keys == found.latch_keys, "unplugged it keeps its name"
    assert str(BY_ID) == "/dev/serial/by-id"


@pytest.mark.promise(36)
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (LinkAddress(port="a", host="127.0.0.1", tcp_port=502), "localhost"),
        (LinkAddress(port="a", host="127.0.0.1", tcp_port=502), "0.0.0.0"),
        (LinkAddress(port="a", host="192.0.2.7", tcp_port=502), "::ffff:192.0.2.7"),
        (LinkAddress(port="a", url="ws://127.0.0.1:502/icl"), "127.0.0.1"),
        (LinkAddress(port="a", resource="TCPIP0::192.0.2.7::502::SOCKET"), "192.0.2.7"),
    ],
    ids=["its name", "any address", "wrapped in IPv6", "a WebSocket", "VISA"],
)
def test_a_host_is_the_same_by_whatever_name_it_is_reached(first: LinkAddress, second: str) -> None:
    found = identify(LinkAddress(port="b", host=second, tcp_port=502))
    assert set(identify(first).lock_keys) & set(found.lock_keys)
    other = identify(LinkAddress(port="b", host=second, tcp_port=503))
    assert not set(identify(first).lock_keys) & set(other.lock_keys)


def test_a_host_that_no_name_server_tells_of_is_waited_for_no_longer_than_a_trip_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def silent(*asked: object, **more: object) -> list[object]:
        gate.wait()
        return []

    import threading

    gate = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", silent)
    found: list[LinkIdentity] = []
    address = LinkAddress(port="gas", host="Gateway", tcp_port=502)
    asking = threading.Thread(target=lambda: found.append(identify(address)), daemon=True)
    asking.start()
    asking.join(5.0)
    gate.set()
    assert [each.lock_keys for each in found] == [("tcp-gateway-502",)]


# ---- the lock


def test_one_process_holds_a_port_and_says_who_it_is(address: LinkAddress) -> None:
    ports = [identify(address)]
    assert who_holds(ports, LINE) is None
    lock = PortLock(ports, LINE, {"pid": 7})
    assert who_holds(ports, LINE) == ("heat", {"pid": 7})
    with pytest.raises(PortTaken) as why:
        PortLock(ports, LINE, {"pid": 8})
    assert (why.value.port, why.value.who) == ("heat", {"pid": 7})
    PortLock(ports, GUARD, {}).release()
    lock.release()
    assert who_holds(ports, LINE) is None
    PortLock(ports, LINE, {}).release()


@pytest.mark.parametrize("written", [b"", b"no json", b"[7]", b"\xff"])
def test_a_lock_whose_words_are_damaged_is_held_by_nobody_that_is_known(
    address: LinkAddress, written: bytes
) -> None:
    ports = [identify(address)]
    lock = PortLock(ports, LINE, {"pid": 7})
    (key,) = ports[0].lock_keys
    for place in port_records.LOCK_PLACES:
        (place / f"{key}.line").write_bytes(written)
    assert who_holds(ports, LINE) == ("heat", {})
    lock.release()


def test_what_is_taken_before_a_port_that_is_not_free_is_given_back(address: LinkAddress) -> None:
    other = LinkIdentity("gas", ("tcp-here-1",), ("tcp-here-1",))
    held = PortLock([identify(address)], LINE, {})
    with pytest.raises(PortTaken):
        PortLock([other, identify(address)], LINE, {})
    PortLock([other], LINE, {}).release()
    held.release()


def test_all_accounts_may_use_locks_and_records(tmp_path: Path, address: LinkAddress) -> None:
    PortLock([identify(address)], LINE, {}).release()
    latch_of(tmp_path / "first", address).close(HOT)
    (key,) = identify(address).lock_keys
    for place in port_records.LOCK_PLACES:
        assert stat.S_IMODE(place.stat().st_mode) == 0o1777
        assert stat.S_IMODE((place / f"{key}.line").stat().st_mode) == 0o666
    assert stat.S_IMODE((port_records.SHARED_PLACE / f"{key}.latch").stat().st_mode) == 0o666


def test_the_places_are_these_and_no_variable_moves_them() -> None:
    moved = dict.fromkeys(
        ("LABHARNESS_STATE", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "TMPDIR", "HOME"), "/elsewhere"
    )
    code = "from labharness.safety.guard import port_records as p; "
    code += "print(p.LOCK_PLACES, p.LATCH_PLACES)"
    path = os.environ["PYTHONPATH"].partition(os.pathsep)[2] or os.getcwd()
    said = subprocess.run(
        [COMMAND[0], "-c", code],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": path, **moved},
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout
    shared = "PosixPath('/var/tmp/labharness')"
    assert said == (
        f"(PosixPath('/run/lock/labharness'), {shared}) "
        f"(PosixPath('/var/lib/labharness/ports'), {shared})\n"
    )


# ---- the latch


@pytest.mark.promise(14)
def test_a_latch_holds_whichever_lab_leads_to_its_port(
    tmp_path: Path, address: LinkAddress
) -> None:
    first = latch_of(tmp_path / "first", address)
    first.close(HOT)
    with pytest.raises(LatchedElsewhere) as why:
        latch_of(tmp_path / "copy", address)
    for word in ("port heat", str(tmp_path / "first"), "960 degC", RESET):
        assert word in str(why.value)
    folder = tmp_path / "copy"
    shut = Latch.or_shut(folder / "latch.json", "", PortLatch([address], folder, "reset"))
    assert shut.trip is not None
    assert shut.trip.procedure == HOT.procedure, "what made the line safe makes it safe again"
    latch_of(tmp_path / "first", address).open()
    assert latch_of(tmp_path / "copy", address).trip is None


@pytest.mark.promise(14)
def test_a_port_that_was_left_armed_is_latched_for_every_lab(
    tmp_path: Path, address: LinkAddress
) -> None:
    first = latch_of(tmp_path / "first", address)
    first.set_marker("stop")
    with pytest.raises(LatchedElsewhere, match=LEFT_ARMED[:20]):
        latch_of(tmp_path / "copy", address)
    first.clear_marker()
    assert latch_of(tmp_path / "copy", address).trip is None


@pytest.mark.promise(14)
def test_a_mark_that_goes_leaves_the_latch_of_a_port(tmp_path: Path, address: LinkAddress) -> None:
    first = latch_of(tmp_path / "first", address)
    first.set_marker("stop")
    first.close(HOT)
    first.clear_marker()
    with pytest.raises(LatchedElsewhere, match="960 degC"):
        latch_of(tmp_path / "copy", address)


@pytest.mark.promise(14)
def test_a_line_is_not_marked_whose_port_was_latched_elsewhere_meanwhile(
    tmp_path: Path, address: LinkAddress
) -> None:
    copy = latch_of(tmp_path / "copy", address)
    latch_of(tmp_path / "first", address).close(HOT)
    with pytest.raises(OSError, match="port heat is latched on this machine"):
        copy.set_marker("stop")
    assert not (tmp_path / "copy" / "guard.armed").exists()


def test_a_latch_whose_own_folder_is_lost_is_reset_by_whoever_leads_there(
    tmp_path: Path, address: LinkAddress
) -> None:
    latch_of(tmp_path / "first", address).close(HOT)
    (tmp_path / "first" / "latch.json").unlink()
    for folder in (tmp_path / "first", tmp_path / "copy"):
        assert latch_of(folder, address).trip == HOT
    latch_of(tmp_path / "copy", address).open()
    assert latch_of(tmp_path / "first", address).trip is None


def test_a_latch_goes_to_its_ports_though_its_own_folder_is_gone(
    tmp_path: Path, address: LinkAddress
) -> None:
    first = latch_of(tmp_path / "first", address)
    (tmp_path / "first").rmdir()
    first.close(HOT)
    assert first.write_error
    assert latch_of(tmp_path / "copy", address).trip == HOT


@pytest.mark.promise(14)
@pytest.mark.parametrize("what", ["torn", "pipe", "link", "hidden"])
def test_a_record_that_cannot_be_read_is_a_latch(
    tmp_path: Path, address: LinkAddress, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    latch_of(tmp_path / "first", address).close(HOT)
    (key,) = identify(address).latch_keys
    record = port_records.SHARED_PLACE / f"{key}.latch"
    whole = record.read_bytes()
    if what == "torn":
        record.write_bytes(whole[: len(whole) // 2])
    elif what == "hidden":

        def hides(place: object) -> list[str]:
            raise PermissionError(13, "Permission denied", str(place))

        monkeypatch.setattr(os, "listdir", hides)
    else:
        record.unlink()
        os.mkfifo(record) if what == "pipe" else record.symlink_to("nowhere")
    with pytest.raises(LatchUnreadable, match="the line stays latched"):
        latch_of(tmp_path / "first", address)
    if what != "hidden":
        record.unlink()


def test_a_line_is_not_armed_where_no_place_takes_the_record_of_its_ports(
    tmp_path: Path, address: LinkAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    monkeypatch.setattr(port_records, "LATCH_PLACES", (tmp_path / "file" / "place",))
    latch = latch_of(tmp_path / "first", address)
    with pytest.raises(OSError, match="no place"):
        latch.set_marker("stop")
    assert not (tmp_path / "first" / "guard.armed").exists(), "nothing was armed"


def test_a_simulator_that_is_given_a_number_forgets_whose_it_was(tmp_path: Path) -> None:
    address = LinkAddress(port="gas", host="127.0.0.1", tcp_port=1)
    latch_of(tmp_path / "first", address).close(HOT)
    clear_ports([address])
    assert latch_of(tmp_path / "copy", address).trip is None


# ---- lab files


def tcp_lab(folder: Path, host: str, name: str) -> LabPlan:
    """The short line with its gauge on TCP, and another id and state directory."""
    folder.mkdir()
    old = 'name = "vacuum"\nlink = "loopback"'
    lab = edited_lab(folder, old, f'name = "vacuum"\nlink = "tcp"\nhost = "{host}"\nport = 4001')
    text = lab.read_text("utf-8").replace('id = "short-line"', f'id = "{name}"')
    lab.write_text(text.replace("labharness/short-line", f"labharness/{name}"), "utf-8")
    return read_lab(lab)


@pytest.mark.promise(36)
def test_two_lab_files_that_lead_to_one_instrument_have_one_owner(tmp_path: Path) -> None:
    first, copy = (
        tcp_lab(tmp_path / "first", "127.0.0.1", "first"),
        tcp_lab(tmp_path / "copy", "localhost", "copy"),
    )
    first.make_state_dir()
    copy.make_state_dir()
    with first.lock(tmp_path):
        for taken in (copy.lock, partial(LineLock, copy.state_dir, None, copy.identities())):
            with pytest.raises(LineBusy) as why:
                taken()
            for word in ("port vacuum", f"process {os.getpid()}", f"--lab {first.path}"):
                assert word in str(why.value)
        found = owner_elsewhere(copy.identities(), copy.state_dir)
        assert found is not None
        assert found.state_dir == str(first.state_dir)
        assert owner_elsewhere(first.identities(), first.state_dir) is None
        for words in (("set", "argon.setpoint", 1, "sccm"), ("stop",)):
            said = say(*words, "--lab", copy.path)
            assert (said.code, said.out) == (1, ""), said
            assert f"process {os.getpid()}" in said.err
            assert str(first.path) in said.err
    copy.lock(tmp_path).release()


@pytest.mark.promise(14)
@pytest.mark.parametrize("line", ["", 'state_dir = "~/state"\n', 'state_dir = "state"\n'])
@pytest.mark.parametrize("command", [("guard",), ("arm",), ("lab", "check", "--lab")])
def test_a_lab_with_a_real_port_states_one_place_for_all_accounts(
    tmp_path: Path, command: tuple[str, ...], line: str
) -> None:
    lab = tcp_lab(tmp_path / "lab", "127.0.0.1", "lab").path
    text = lab.read_text("utf-8")
    (named,) = [each for each in text.splitlines(keepends=True) if each.startswith("state_dir")]
    lab.write_text(text.replace(named, line), "utf-8")
    say(*command, lab).is_one_plain_error('state_dir = "/var/lib/labharness/lab"')


def test_the_state_directory_of_real_ports_is_its_groups_as_well(tmp_path: Path) -> None:
    plan = tcp_lab(tmp_path / "lab", "127.0.0.1", "lab")
    plan.make_state_dir()
    assert stat.S_IMODE(plan.state_dir.stat().st_mode) == 0o2770
    before = os.umask(0o077)
    try:
        plan.lock(tmp_path).release()
        Latch(plan.state_dir / "latch.json").close(HOT)
    finally:
        os.umask(before)
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in plan.state_dir.iterdir()}
    assert set(modes.values()) == {0o660}, modes


# ---- guard processes


def second(rig: GuardBench, folder: Path) -> GuardBench:
    """Return a bench with a state directory of its own on the ports of another."""
    return GuardBench(folder, rig.devices)


@pytest.mark.promise(36)
def test_a_guard_of_another_lab_does_not_take_ports_that_are_guarded(tmp_path: Path) -> None:
    with bench(tmp_path / "first") as rig:
        first = rig.start()
        rig.call()
        other = second(rig, tmp_path / "copy")
        guard = other.start()
        _, err = guard.communicate(timeout=20)
        other.guard = None
        assert guard.returncode == 64
        assert f"is in use on this machine: process {first.pid}".encode() in err
        assert str(rig.state_dir).encode() in err


@pytest.mark.promise(14)
@pytest.mark.parametrize("dies", ["harness", "both"])
def test_a_guard_started_elsewhere_does_not_arm_a_port_that_is_latched(
    tmp_path: Path, dies: str
) -> None:
    with bench(tmp_path / "first") as rig:
        rig.start()
        caller = rig.armed_by()
        if dies == "harness":
            caller.socket.close()
            until((rig.state_dir / "latch.json").exists, "its latch")
        rig.kill()
        rig.devices.forget()
        other = second(rig, tmp_path / "copy")
        other.start()
        late = other.call()
        assert late.welcome["latched"]
        assert str(rig.state_dir) in late.welcome["trip"]["detail"]
        late.say(do="arm", lost="stop")
        assert "latched" in late.hear("armed")["error"]
        assert "refused" in late.send(late.permit())["error"]
        until(other.made_safe, "the safe table, once more")
        assert ON.frame not in other.frames("heat")
        late.say(do="reset")
        assert str(rig.state_dir) in late.hear("reset")["error"]
        assert not (other.state_dir / "latch.json").exists()
        other.close()


def test_a_record_holds_what_a_person_needs(tmp_path: Path, address: LinkAddress) -> None:
    latch_of(tmp_path / "first", address).close(HOT)
    (key,) = identify(address).latch_keys
    kept = json.loads((port_records.SHARED_PLACE / f"{key}.latch").read_text("utf-8"))
    assert kept["trip"]["detail"] == "960 degC"
    assert (kept["state_dir"], kept["reset"]) == (str(tmp_path / "first"), RESET)


@pytest.mark.promise(36)
@pytest.mark.parametrize("taken", ["the folder", "the socket"])
def test_a_guard_that_finds_its_door_taken_away_makes_the_line_safe_latches_and_ends(
    tmp_path: Path, taken: str
) -> None:
    with bench(tmp_path / "first") as rig:
        guard = rig.start()
        caller = rig.armed_by()
        rig.devices.forget()
        moved = tmp_path / "moved away"
        if taken == "the folder":
            rig.state_dir.rename(moved)
        else:
            (rig.state_dir / "guard.sock").unlink()
        since_s = time.monotonic()
        while not rig.made_safe():
            caller.heartbeat()  # its harness lives, and is of no use to whoever wants to stop it
            time.sleep(0.05)
            assert time.monotonic() - since_s < 10.0
        caller.leave()
        _, err = guard.communicate(timeout=20)
        rig.guard = None
        assert b"guard.sock was removed under its owner" in err
        folder = tmp_path / "copy"
        folder.mkdir()
        latch = Latch.or_shut(
            folder / "latch.json", "", PortLatch([rig.armed.ports[0].address], folder, RESET)
        )
        assert latch.trip is not None
        assert "under its owner" in latch.trip.detail
