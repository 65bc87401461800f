"""A line that nobody owns: each link is opened once, and all that is in the way is told at once."""

import os
import random
import socketserver
import struct
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from commands import edited_lab, say
from labharness.core.vocabulary.extras import all_to_install
from labharness.instruments.link.descriptors import SerialDescriptor
from labharness.lab.config.kinds import load_simulator
from small_lab import written

SERIAL = 'link = "serial"\npath = "/dev/serial/by-id/usb-{}"\nbaud = 19200'
VISA = 'link = "visa"\nresource = "TCPIP::127.0.0.1::{}::SOCKET"'
WEBSOCKET = 'link = "websocket"\nurl = "{}"'


@pytest.fixture
def gauge() -> Iterator[tuple[int, list[bytes]]]:
    """A simulated gauge at 4.321 Torr on a TCP port: its number, and the first words it heard."""
    part = SimpleNamespace(pressure_torr=4.321)
    face = load_simulator("mks_910")(SimpleNamespace(now=0), part, random.Random(1), address=253)
    opened: list[bytes] = []

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            mine, buffer = len(opened), b""
            opened.append(b"")
            while data := self.request.recv(4096):
                buffer += data
                while length := face.frame_length(buffer):
                    frame, buffer = buffer[:length], buffer[length:]
                    opened[mine] = opened[mine] or frame
                    if (reply := face.receive(frame)) is not None:
                        self.request.sendall(reply)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server.server_address[1], opened
        server.shutdown()
        thread.join()


def test_two_channels_on_one_visa_session_are_read_over_one_connection(
    tmp_path: Path, gauge: tuple[int, list[bytes]]
) -> None:
    number, opened = gauge
    old = 'name = "vacuum"\nlink = "loopback"\nbaud = 9600'
    lab = edited_lab(tmp_path, old, f'name = "vacuum"\n{VISA.format(number)}')
    said = say("read", "gauge.pressure", "gauge.fault", "gauge.pressure", "--lab", lab)
    assert (said.code, said.err) == (0, "")
    pressure = "gauge.pressure 4.321 Torr"
    assert said.out.splitlines() == [pressure, "gauge.fault 0", pressure]
    assert len(opened) == 1


def small(folder: Path, heat: str, gas: str) -> Path:
    """The lab of one furnace and one flow controller, with other links."""
    lab = written(folder)
    text = lab.read_text("utf-8")
    for name, link in (("heat", heat), ("gas", gas)):
        assert SERIAL.format(name) in text
        text = text.replace(SERIAL.format(name), link)
    lab.write_text(text, "utf-8")
    return lab


def test_every_port_that_does_not_open_is_named_with_its_own_reason(tmp_path: Path) -> None:
    lab = small(tmp_path, SERIAL.format("heat"), SERIAL.format("gas"))
    for said in (
        say("lab", "check", "--connect", "--lab", lab),
        say("read", "mfc.flow", "--lab", lab),
    ):
        assert said.code == 1
        told = said.out + said.err
        for name in ("heat", "gas"):
            assert (
                f"port {name}: serial /dev/serial/by-id/usb-{name} does not open: No such" in told
            )


def test_a_visa_address_that_is_none_is_a_finding_beside_the_others(tmp_path: Path) -> None:
    lab = small(tmp_path, 'link = "visa"\nresource = "nonsense"', VISA.format(9))
    said = say("lab", "check", "--connect", "--lab", lab)
    assert said.code == 1
    assert "finding: port heat: visa nonsense does not open: VI_ERROR_INV_RSRC_NAME" in said.out
    assert "finding: mfc: " in said.out


@pytest.mark.parametrize("url", ["wss://host/icl", "http://host:80", "ws://", "ws://host:99999"])
def test_an_address_that_is_no_websocket_is_one_plain_error_of_the_lab_file(
    tmp_path: Path, url: str
) -> None:
    lab = small(tmp_path, VISA.format(9), WEBSOCKET.format(url))
    for words in (("lab", "check", "--connect"), ("read", "mfc.flow"), ("lab", "check")):
        said = say(*words, "--lab", lab)
        said.is_one_plain_error("port 'gas'", f"{url!r} is not ws://host:port/path")


# ---- what is not installed


def test_everything_that_is_to_be_installed_is_told_at_once_with_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = small(tmp_path, VISA.format(9), WEBSOCKET.format("ws://127.0.0.1:9"))
    text = lab.read_text("utf-8")
    alert = '[[alert]]\nname = "mail"\nurl = "json://127.0.0.1"\nseverities = ["critical"]\n'
    lab.write_text(f"{text}\n{alert}", "utf-8")
    for module in ("pyvisa", "wsproto", "apprise"):
        monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    every = all_to_install(("pyvisa", "wsproto", "apprise"))
    assert every == (
        "to call people it takes apprise, for links of kind visa it takes pyvisa, for links of "
        "kind websocket it takes wsproto: pip install 'labharness[alert,visa,websocket]'"
    )
    say("read", "mfc.flow", "--lab", lab).is_one_plain_error(every)
    out = tmp_path / "run"
    say(
        *("set", "mfc.setpoint", "1", "sccm", "--attend", "--name", "Ada", "--for", "1"),
        *("--out", out, "--lab", lab),
    ).is_one_plain_error(every)
    assert not out.exists()
    said = say("lab", "check", "--connect", "--lab", lab)
    assert said.code == 1
    assert [each for each in said.out.splitlines() if "pip install" in each] == [
        f"finding: ports heat, gas: {every}"
    ]


if sys.platform != "win32":
    import fcntl


TIOCGEXCL = 0x80045440  # of Linux: whether a terminal is locked, for all but root


@pytest.mark.skipif(sys.platform != "linux", reason="the lock can be asked for on Linux alone")
def test_a_closed_port_is_locked_no_more_though_its_terminal_stays_open() -> None:
    master, slave = os.openpty()
    try:
        port = SerialDescriptor(os.ttyname(slave), 9600, "N", 1)
        port.open(1.0)
        assert struct.unpack("i", fcntl.ioctl(slave, TIOCGEXCL, bytes(4))) == (1,)
        port.close()
        assert struct.unpack("i", fcntl.ioctl(slave, TIOCGEXCL, bytes(4))) == (0,)
    finally:
        os.close(master)
        os.close(slave)
