"""Served simulators at TCP ports of the user's choice, for clients that take no other."""

import socket
from contextlib import closing
from pathlib import Path

import pytest
from pymodbus.client import ModbusTcpClient

from commands import say
from labharness.lab import read_lab
from platforms import serves_ports
from rig import SHORT_LINE
from served import Served

pytestmark = serves_ports


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
