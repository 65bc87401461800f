"""Served simulators, met by foreign clients over real links: values, crashes, faults, errors."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import serial
import websockets.sync.client
from pymodbus.client import ModbusSerialClient, ModbusTcpClient

from commands import edited_lab, planned, say, spawn
from labharness.core.clock import PacedLoop, run
from labharness.instruments.link import LinkLost
from labharness.lab import read_lab
from labharness.lab.wiring.operators import ServedOperator
from labharness.lab.wiring.preflight import predict
from labharness_simulators.plant import CvdTube
from platforms import serves_ports
from rig import SHORT_LINE
from served import Served

pytestmark = serves_ports

SPEED = 60  # of the plant and its wires: an hour of a plant's life is one minute
LOAD = {
    "moo3_mass_mg": 10.0,
    "sulfur_mass_mg": 200.0,
    "substrate": "SiO2/Si",
    "sample_id": "s1",
}
OVER_RANGE_C = 1400.0
CLOSED_RELAY = b"\x01\x05\x00\x00\xff\x00\x8c\x3a"  # argon valve on
ASK_RELAYS = b"\x01\x01\x00\x00\x00\x08\x3d\xcc"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The short line, served for all tests of this file."""
    with Served(tmp_path_factory.mktemp("lab"), "--speed", SPEED) as served:
        yield served
    assert served.process.returncode == 0, "nothing that the tests did may have broken it"


@pytest.fixture(autouse=True)
def _healthy(lab: Served) -> Iterator[None]:
    """Leave the plant and its buses as they were."""
    before = lab.ask("faults")
    yield
    if lab.process.poll() is None:
        lab.ask("fault", set=before["plant"])
        for port, values in before["bus"].items():
            lab.ask("bus", port=port, set=values)


def modbus(lab: Served, port: str) -> ModbusSerialClient:
    client = ModbusSerialClient(lab.status["ports"][port], baudrate=19200, timeout=1, retries=0)
    assert client.connect()
    return client


def exchange(port: serial.Serial, frame: bytes, end: bytes) -> bytes:
    port.write(frame)
    return bytes(port.read_until(end))


# ---- values, by clients that are not ours


def test_pymodbus_reads_and_sets_both_controllers_on_one_serial_port(lab: Served) -> None:
    client = modbus(lab, "heat")
    for unit, name in ((1, "substrate_c"), (2, "sulfur_c")):
        found = client.read_holding_registers(1, count=1, device_id=unit)
        assert found.registers[0] / 10 == pytest.approx(lab.truth()[name], abs=3.0)
        assert not client.write_register(2, 250 + unit, device_id=unit).isError()
        assert client.read_holding_registers(2, count=1, device_id=unit).registers == [250 + unit]
        assert not client.write_register(2, 0, device_id=unit).isError()
    assert client.read_holding_registers(60_000, count=1, device_id=1).isError()
    client.close()  # type: ignore[no-untyped-call]  # pymodbus leaves it so


def test_pymodbus_reads_the_gas_detector_over_tcp(lab: Served) -> None:
    host, number = lab.address("detector")
    client = ModbusTcpClient(host, port=number, timeout=1, retries=0)
    assert client.connect()  # type: ignore[no-untyped-call]  # pymodbus leaves it so
    lab.ask("fault", set={"h2_detector_offset_ppm": 120})
    time.sleep(2 / SPEED)
    assert client.read_holding_registers(4, count=1, device_id=1).registers[0] >= 100
    client.close()  # type: ignore[no-untyped-call]  # pymodbus leaves it so


def test_raw_serial_reads_gas_and_pressure_and_switches_a_relay(lab: Served) -> None:
    with lab.serial("inert") as port:
        assert exchange(port, b"AVE\r", b"\r").startswith(b"A   10v20")
        assert exchange(port, b"AS100\r", b"\r").split()[5] == b"+100.00"
    with lab.serial("vacuum") as port:
        said = exchange(port, b"@253PR4?;FF", b";FF")
        pressure_torr = float(said.removeprefix(b"@253ACK").removesuffix(b";FF"))
        assert pressure_torr * 133.322 == pytest.approx(lab.truth()["pressure_pa"], rel=0.05)
    with lab.serial("relays") as port:
        port.write(CLOSED_RELAY)
        assert port.read(8) == CLOSED_RELAY
        port.write(ASK_RELAYS)
        assert port.read(6)[3] & 1
    time.sleep(20 / SPEED)
    assert lab.truth()["argon_sccm"] == pytest.approx(100.0, abs=5.0)
    with lab.serial("inert") as port:
        assert float(exchange(port, b"A\r", b"\r").split()[4]) == pytest.approx(100.0, abs=5.0)
        exchange(port, b"AS0\r", b"\r")


def test_a_websocket_client_opens_the_spectrometer(lab: Served) -> None:
    with websockets.sync.client.connect(lab.status["ports"]["spectrometer"]) as client:

        def call(command: str, **parameters: object) -> dict[str, Any]:
            client.send(json.dumps({"id": 7, "command": command, "parameters": parameters}))
            answer: dict[str, Any] = json.loads(client.recv(timeout=2))
            return answer

        assert call("icl_info")["results"]["nodeAlias"] == "ICL"
        call("ccd_discover")
        assert call("ccd_open", index=0)["errors"] == []
        assert call("ccd_getChipSize", index=0)["results"] == {"x": 1024, "y": 256}
        assert call("ccd_sing", index=0)["errors"]
        client.send("no JSON")
        with pytest.raises(TimeoutError):
            client.recv(timeout=0.1)
        assert call("ccd_close", index=0)["errors"] == []


def test_the_harness_identifies_every_instrument_over_the_links_that_were_written(
    lab: Served,
) -> None:
    said = say("lab", "check", "--connect", "--lab", lab.lab_file)
    assert said.code == 0, said
    for name in ("furnace", "sulfur", "argon", "box", "gauge", "h2_detector", "spectrometer"):
        assert f"\n{name} " in said.out
    links = {row.name: row.link for row in read_lab(lab.lab_file).file.port}
    assert links.pop("detector") == "tcp"
    assert links.pop("spectrometer") == "websocket"
    assert set(links.values()) == {"serial"}


def test_a_port_that_somebody_holds_is_one_finding_and_not_one_an_instrument(lab: Served) -> None:
    with lab.serial("relays"):
        said = say("lab", "check", "--connect", "--lab", lab.lab_file)
    assert said.code == 1
    (finding,) = (line for line in said.out.splitlines() if line.startswith("finding: "))
    assert "relays does not open: another process has it open" in finding


# ---- clients that go


def test_a_client_that_is_killed_in_mid_frame_leaves_nothing_to_the_next(lab: Served) -> None:
    path = lab.status["ports"]["relays"]
    half = (
        "import serial, sys, time\n"
        f"port = serial.Serial({path!r}, 9600, exclusive=True)\n"
        f"port.write({CLOSED_RELAY[:5]!r})\n"
        "print('half', flush=True)\n"
        "time.sleep(60)\n"
    )
    since = lab.ask("bytes", since=10**12)["count"]
    client = subprocess.Popen([sys.executable, "-c", half], stdout=subprocess.PIPE)
    assert client.stdout is not None
    assert client.stdout.readline() == b"half\n"
    client.kill()
    client.communicate()
    with lab.serial("relays") as port:  # the dead one's lock is gone
        answers = [_asked(port, ASK_RELAYS, 6) for _ in range(2)]
    # a simulator that was not scheduled from the first one's bytes to the second one's cannot tell
    # them apart, and owes one answer
    assert answers[1][:3] == b"\x01\x01\x01"
    assert answers[0] in (answers[1], b"")
    heard = [data for _, _, event, data in lab.log("relays", since) if event == "heard"]
    assert heard[-1] == ASK_RELAYS
    assert CLOSED_RELAY not in heard


def _asked(port: serial.Serial, frame: bytes, count: int) -> bytes:
    port.write(frame)
    return bytes(port.read(count))


def test_a_port_that_is_opened_again_at_once_shows_nothing_of_the_exchange_before(
    lab: Served,
) -> None:
    lab.ask("bus", port="inert", set={"reply_late_s": 0.05 * SPEED})
    for _ in range(10):
        since = lab.ask("bytes", since=10**12)["count"]
        with lab.serial("inert") as port:
            port.write(b"A\r")
            while not any(event == "heard" for _, _, event, _ in lab.log("inert", since)):
                time.sleep(0.001)
        with lab.serial("inert") as port:
            assert exchange(port, b"BVE\r", b"\r").startswith(b"B   10v20")


def test_a_port_that_is_opened_for_each_exchange_answers_each(lab: Served) -> None:
    for _ in range(30):
        with lab.serial("inert") as port:
            assert exchange(port, b"BVE\r", b"\r").startswith(b"B   10v20")


def test_who_is_refused_the_port_does_not_disturb_who_has_it(lab: Served) -> None:
    with lab.serial("inert") as port:
        for _ in range(5):
            port.write(b"AVE\r")
            with pytest.raises(serial.SerialException, match="exclusively lock"):
                lab.serial("inert")
            assert port.read_until(b"\r").startswith(b"A   10v20")


def test_a_client_that_floods_waits_and_holds_nothing_up(lab: Served) -> None:
    with lab.serial("stage") as port:
        place = exchange(port, b"P\r", b"\r")
        since = lab.ask("bytes", since=10**12)["count"]
        port.write_timeout = 0.03
        with pytest.raises(serial.SerialTimeoutException):
            port.write(b"x" * 100_000)
    while not any(event == "gone" for _, _, event, _ in lab.log("stage", since)):
        time.sleep(0.001)
    with lab.serial("stage") as port:
        assert exchange(port, b"P\r", b"\r") == place, "of an endless line nothing is left"
    with socket.create_connection(lab.address("detector")) as link:
        link.sendall(b"\0\1\0\0\xff\xff" + b"x" * 20_000)
        link.settimeout(2)
        assert _is_hung_up(link)


def test_a_tcp_port_turns_away_who_is_too_many_and_lets_in_again(lab: Served) -> None:
    ask = b"\0\1\0\0\0\6\1\3\0\0\0\1"
    there = [socket.create_connection(lab.address("detector"), 2) for _ in range(4)]
    with socket.create_connection(lab.address("detector"), 2) as fifth:
        assert _is_hung_up(fifth)
    for each in there:
        each.sendall(ask)
        assert len(each.recv(16)) == 11
        each.close()
    time.sleep(0.05)
    with socket.create_connection(lab.address("detector"), 2) as again:
        again.sendall(ask)
        assert len(again.recv(16)) == 11


def _is_hung_up(link: socket.socket) -> bool:
    try:
        return link.recv(1) == b""
    except ConnectionResetError:
        return True


# ---- faults, truth, time and the log


def test_faults_show_in_the_truth_and_in_the_readings(lab: Served) -> None:
    client = modbus(lab, "heat")
    lab.ask("fault", set={"furnace_sensor_broken": True, "exhaust_lost": True})
    assert client.read_holding_registers(1, count=1, device_id=1).registers == [
        int(OVER_RANGE_C * 10)
    ]
    assert lab.ask("faults")["plant"]["exhaust_lost"] is True
    lab.ask("bus", port="heat", set={"cut": True})
    found = _or_none(client)
    assert found is None
    lab.ask("bus", port="heat", set={"cut": False, "reply_late_s": 0.0})
    client.close()  # type: ignore[no-untyped-call]  # pymodbus leaves it so
    client = modbus(lab, "heat")
    assert _or_none(client) is not None
    client.close()  # type: ignore[no-untyped-call]  # pymodbus leaves it so


def _or_none(client: ModbusSerialClient) -> Any:
    from pymodbus.exceptions import ModbusException

    try:
        found = client.read_holding_registers(1, count=1, device_id=1)
    except ModbusException:
        return None
    return None if found.isError() else found


def test_the_plant_lives_on_while_nobody_is_there(lab: Served) -> None:
    client = modbus(lab, "relays")
    assert not client.write_coils(6, [True, True], device_id=1).isError()
    client.close()  # type: ignore[no-untyped-call]  # pymodbus leaves it so
    lab.ask("fault", set={"add_furnace_c_per_s": 2.0})
    before = lab.truth()
    time.sleep(1.0)
    after = lab.truth()
    assert after["time_s"] - before["time_s"] == pytest.approx(SPEED, abs=0.3 * SPEED)
    assert after["furnace_heater_c"] > before["furnace_heater_c"] + 5
    client = modbus(lab, "relays")
    assert not client.write_coils(6, [False, False], device_id=1).isError()
    client.close()  # type: ignore[no-untyped-call]  # pymodbus leaves it so


def test_the_served_operator_loads_the_sample_and_shuts_the_lid(lab: Served) -> None:
    operator = ServedOperator(lab.status["control"], delay_s=0.0)

    async def confirm(action: str, details: dict[str, object]) -> tuple[str, dict[str, Any]]:
        doing = asyncio.ensure_future(operator.confirm(action, "", details))
        await asyncio.sleep(0.3)
        meanwhile = lab.truth()
        return await doing, meanwhile

    with pytest.raises(LinkLost, match="an operator can 'load'"):
        run(confirm("dance", {}), PacedLoop())
    who, meanwhile = run(confirm("load", LOAD), PacedLoop())
    assert who == "simulated operator"
    assert meanwhile["o2_fraction"] == pytest.approx(0.21, abs=0.01), "the lid is open meanwhile"
    assert lab.truth()["sample_at"] == "tube"
    with lab.serial("relays") as port:
        port.write(b"\x01\x02\x00\x00\x00\x08\x79\xcc")
        assert port.read(6)[3] & 2, "the lid is shut"


def test_an_operator_whose_room_is_gone_says_so() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(LinkLost, match="served lab at 127"):
            run(ServedOperator(address, 0.0).confirm("load", "", LOAD), PacedLoop())


def test_the_wire_log_has_every_byte_with_the_time_all_processes_share(lab: Served) -> None:
    since = lab.ask("bytes", since=10**12)["count"]
    before_ns = time.monotonic_ns()
    with lab.serial("stage") as port:
        reply = exchange(port, b"P\r", b"\r")
    after_ns = time.monotonic_ns()
    rows = lab.log("stage", since)
    by_event: dict[str, bytes] = {}
    for _, _, event, data in rows:
        by_event[event] = by_event.get(event, b"") + data
    assert by_event["handed"] == by_event["heard"] == b"P\r"
    assert by_event["sent"] == reply
    times = [at for at, _, event, _ in rows if event != "gone"]
    assert [before_ns, *times, after_ns] == sorted([before_ns, *times, after_ns])


def test_a_flight_over_a_lab_with_real_links_touches_none_of_them(lab: Served) -> None:
    since = lab.ask("bytes", since=10**12)["count"]
    plan = read_lab(lab.lab_file)
    assert predict(plan, planned(plan), {}).violation is None
    assert lab.ask("bytes", since=since)["rows"] == []


# ---- the command


def test_room_asks_and_sets_from_the_command_line(lab: Served) -> None:
    folder = lab.folder
    assert (
        json.loads(say("simulated", folder, "fault", "air_leak_sccm=5").out)["plant"][
            "air_leak_sccm"
        ]
        == 5.0
    )
    assert json.loads(say("simulated", folder, "bus", "heat", "cut=true").out)["bus"]["heat"]["cut"]
    assert json.loads(say("simulated", folder, "status").out)["speed"] == SPEED
    assert "substrate_c" in json.loads(say("simulated", folder, "truth").out)["truth"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fault", "gremlins=true"), "gremlins"),
        (("fault", "lid_open=1"), "true or false"),
        (("fault", "lid_opn=true"), "(did you mean lid_open?)"),
        (("fault", "air_leak_sccm=NaN"), "a number from 0 to 1e+06"),
        (("fault", "h2_detector_offset_ppm=1e308"), "a number from -1e+06 to 1e+06"),
        (("fault", f"air_leak_sccm={'9' * 400}"), "a number from 0 to 1e+06"),
        (("fault", "add_furnace_c_per_s=-20"), "a number from 0 to 1000"),
        (("bus", "heat", "reply_late_s=-1"), "a number from 0 to 3600"),
        (("bus", "heat", "lost_share=7"), "a number from 0 to 1"),
        (("bus", "heta", "cut=true"), "(did you mean heat?)"),
        (("bytes", "sinc=0"), "since=ROW"),
        (("statu",), "(did you mean status?)"),
        (("fault", "lid_open"), "name=value"),
        (("fault", "lid_open=true", "gremlins=1"), "gremlins"),
        (("bus", "cellar", "cut=true"), "cellar"),
        (("bus", "heat", "reply_lost=-1"), "whole number"),
        (("bus", "heat", "injected=true"), "injected"),
        (("operate", "dance"), "dance"),
        (("operate", "load", "moo3_mass_mg=1"), "takes"),
        (("bytes", "since=-1"), "since"),
        (("truth", "please"), "please"),
        (("dance",), "dance"),
    ],
)
def test_what_the_room_cannot_do_is_one_plain_error(
    lab: Served, words: tuple[str, ...], said: str
) -> None:
    before = lab.ask("faults")
    say("simulated", lab.folder, *words).is_one_plain_error(said)
    assert lab.ask("faults") == before


def test_a_control_port_answers_nonsense_in_words(lab: Served) -> None:
    host, _, number = lab.status["control"].rpartition(":")
    with socket.create_connection((host, int(number)), 2) as link, link.makefile("rb") as file:
        for nonsense in (b"nonsense", b"[]", b'{"ask": []}', b'{"ask": "fault", "set": 3}'):
            link.sendall(nonsense + b"\n")
            assert "error" in json.loads(file.readline())
        link.sendall(b'{"ask": "bytes", "since": 99999999999999999999}\n')
        assert json.loads(file.readline())["rows"] == [], "and the simulated lab is still there"
        link.sendall(b"x" * 200_000)
        assert "at most" in json.loads(file.readline())["error"]


def test_what_cannot_be_served_is_one_plain_error(lab: Served, tmp_path: Path) -> None:
    bad = edited_lab(tmp_path, 'title = "Short', 'colour = "red"\ntitle = "Short')
    say("simulate", bad, "--folder", tmp_path / "a").is_one_plain_error("colour")
    say("simulate", tmp_path / "gone.toml").is_one_plain_error("gone.toml")
    say("simulate", SHORT_LINE, "--folder", lab.folder).is_one_plain_error("another simulator")
    say("simulate", lab.lab_file, "--folder", tmp_path / "b").is_one_plain_error("no port")
    for speed in ("0", "-1", "nan", "1e9", "fast"):
        say("simulate", SHORT_LINE, "--speed", speed).is_one_plain_error(speed)
    (tmp_path / "file").write_text("mine", "utf-8")
    say("simulate", SHORT_LINE, "--folder", tmp_path / "file").is_one_plain_error("file")
    own = ("--folder", tmp_path / "c", "--write-lab")
    say("simulate", SHORT_LINE, *own, tmp_path / "file").is_one_plain_error("in the way")
    say("simulate", SHORT_LINE, *own, SHORT_LINE).is_one_plain_error("in the way")
    assert (tmp_path / "file").read_text("utf-8") == "mine"
    lost = edited_lab(tmp_path, 'kind = "simulated"', 'kind = "served"')
    say("simulate", lost, "--folder", tmp_path / "e").is_one_plain_error("operator", "control")
    for name in ("control", "../heat"):
        odd = edited_lab(tmp_path, 'name = "stage"\nlink', f'name = "{name}"\nlink')
        odd.write_text(odd.read_text("utf-8").replace('port = "stage"', f'port = "{name}"'))
        say("simulate", odd, "--folder", tmp_path / "e").is_one_plain_error(name, "file's name")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "heat").write_text("mine", "utf-8")
    said = spawn("simulate", SHORT_LINE, "--folder", tmp_path / "d")
    said.is_one_plain_error("heat", "in the way")
    assert sorted(each.name for each in (tmp_path / "d").iterdir()) == ["heat", "line.lock"]


def test_a_folder_that_nobody_serves_from_is_said_as_a_room_that_does_not_answer(
    tmp_path: Path,
) -> None:
    (tmp_path / "stale").mkdir()
    (tmp_path / "stale" / "control").write_text("127.0.0.1:1\n", "utf-8")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "control").write_bytes(b"\xff\xfe")
    for name, words in (
        ("none", f"nobody serves from {tmp_path / 'none'}: No such file"),
        ("stale", "no served lab at 127.0.0.1:1"),
        ("odd", f"nobody serves from {tmp_path / 'odd'}: its control file is not a text"),
    ):
        said = say("simulated", tmp_path / name, "truth")
        assert (said.code, said.out) == (1, "")
        assert said.err.startswith(f"labharness simulated: {words}")
        assert said.err.count("\n") == 1


def test_a_plant_that_breaks_ends_the_command_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(plant: CvdTube, dt_s: float) -> None:
        raise ArithmeticError("the tube is a Klein bottle")

    monkeypatch.setattr(CvdTube, "step", broken)
    said = say("simulate", SHORT_LINE, "--folder", tmp_path / "s")
    assert said.code == 1
    why = "ArithmeticError: the tube is a Klein bottle"
    assert said.err == f"labharness simulate: it broke: {why} [command_failed]\n"
    assert not (tmp_path / "s" / "heat").is_symlink()


def test_it_ends_cleanly_when_asked_and_starts_again_where_one_was_killed(tmp_path: Path) -> None:
    with Served(tmp_path / "s") as killed:
        assert killed.end(signal.SIGKILL) == -signal.SIGKILL
    assert (tmp_path / "s" / "heat").is_symlink()
    asked = say("simulated", tmp_path / "s", "truth")
    assert asked.code == 1
    assert asked.err.count("\n") == 1
    with Served(tmp_path / "s", "--write-lab", tmp_path / "out.toml") as again:
        assert read_lab(tmp_path / "out.toml").file.lab.id == "short-line-served"
        with again.serial("heat") as port:
            assert again.end(signal.SIGTERM) == 0
            with pytest.raises(serial.SerialException):
                port.read(1)
    assert sorted(each.name for each in (tmp_path / "s").iterdir()) == ["lab.toml", "line.lock"]


# ---- Served simulators at TCP ports of the user's choice, for clients that take no other.


def test_a_port_is_served_at_the_number_that_was_asked_for(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        detector = probe.getsockname()[1]
    with socket.create_server(("127.0.0.1", 0)) as probe:
        spectrometer = probe.getsockname()[1]
    asked = ("--tcp", f"detector={detector}", "--tcp", f"spectrometer={spectrometer}")
    with Served(tmp_path / "served", *asked) as served:
        assert served.status["ports"]["detector"] == f"127.0.0.1:{detector}"
        assert served.status["ports"]["spectrometer"] == f"ws://127.0.0.1:{spectrometer}"
        links = {row.name: row for row in read_lab(served.lab_file).file.port}
        assert links["detector"].port == detector
        with closing(ModbusTcpClient("127.0.0.1", port=detector, timeout=2, retries=0)) as client:
            assert not client.read_holding_registers(0, count=1, device_id=1).isError()
        said = say("simulate", SHORT_LINE, "--folder", tmp_path / "b", *asked)
        said.is_one_plain_error("detector", f"127.0.0.1:{detector}", "in use")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["detector"], ["'detector'", "PORT=NUMBER"]),
        (["detector=x"], ["'detector=x'", "PORT=NUMBER"]),
        (["=5020"], ["'=5020'", "PORT=NUMBER"]),
        (["detector=0"], ["1 to 65535"]),
        (["detector=65536"], ["1 to 65535"]),
        (["detector=5020", "detector=5021"], ["'detector'", "twice"]),
        (["detector=5020", "spectrometer=5020"], ["detector", "spectrometer", "5020"]),
        (["heat=5020"], ["'heat'", "not served on TCP", "detector, spectrometer"]),
        (["sun=5020"], ["'sun'", "not served on TCP", "detector, spectrometer"]),
    ],
)
def test_a_number_that_no_port_can_have_is_one_plain_error(
    tmp_path: Path, words: list[str], said: list[str]
) -> None:
    options = [each for word in words for each in ("--tcp", word)]
    say("simulate", SHORT_LINE, "--folder", tmp_path / "a", *options).is_one_plain_error(*said)
