"""A line that comes by itself on a real wire: what is read, checked and set by hand stays true.

The instruments are served by a process of their own, and the harness has a guard process.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from commands import spawn
from rig import IV, SHORT_LINE
from served import Served
from stray_wire import StrayWire

SMU = ("smu.voltage", "smu.compliance", "smu.output")
SMU_SAYS = "smu.voltage 0 V\nsmu.compliance 0.000105 A\nsmu.output 0\n"

pytestmark = [pytest.mark.thorough, pytest.mark.promise(76)]


@contextmanager
def stray(
    folder: Path, lab: Path, port: str, strays: Mapping[bytes, bytes]
) -> Iterator[tuple[Path, StrayWire]]:
    """Serve a lab with such a wire at one of its ports."""
    with Served(folder, lab=lab) as served:
        there = served.status["ports"][port]
        wire = StrayWire(there, strays)
        wire.put_into(served.lab_file, there)
        yield served.lab_file, wire
        wire.close()


@pytest.mark.parametrize("question", [b"*IDN?\n", b":SOUR:VOLT?\n", b":SENS:CURR:PROT?\n"])
@pytest.mark.parametrize("line", [b"0\n", b"0.25\n", b"VOLT\n"])
def test_a_stray_line_before_an_answer_shifts_no_value_that_is_read(
    tmp_path: Path, question: bytes, line: bytes
) -> None:
    with stray(tmp_path / "served", IV, "gpib", {question: line}) as (lab_file, wire):
        said = spawn("read", *SMU, "--lab", lab_file)
        assert wire.strays == {}, "it came"
        assert (said.code, said.out) == (0, SMU_SAYS), said.err


def test_a_lab_is_checked_over_a_stray_line(tmp_path: Path) -> None:
    with stray(tmp_path / "served", IV, "gpib", {b"*IDN?\n": b"0\n"}) as (lab_file, _):
        said = spawn("lab", "check", "--connect", "--lab", lab_file)
        assert said.code == 0, said.err
        assert "smu            2400 " in said.out


def test_a_laser_is_set_and_attended_over_stray_lines(tmp_path: Path) -> None:
    strays = {
        b"sn?\r": b"0\r\n",
        b"l?\r": b"1\r\n",
        b"p?\r": b"0.0009\r\n",
        b"pa?\r": b"0.0007\r\n",
    }
    with stray(tmp_path / "served", SHORT_LINE, "laser", strays) as (lab_file, wire):
        attended = ("--attend", "--for", "12", "--name", "Ada", "--lab", lab_file)
        said = spawn("set", "laser.power", "0.0005", "W", *attended)
        assert wire.strays == {}, "all came"
        assert said.code == 0, said.err
        assert "laser.power confirmed, reads 0.0005" in said.out
        assert "safe state, verified" in said.out
        assert "somebody else" not in said.out + said.err
