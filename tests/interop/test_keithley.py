"""PyMeasure's and QCoDeS's Keithley 2400 on the simulated source meter with its diode."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.conftest import client
from rig import IV
from served import Served

pytestmark = pytest.mark.filterwarnings("ignore")  # a client's own


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The bench of the source meter on a real port."""
    with Served(tmp_path_factory.mktemp("bench") / "served", "--speed", 10, lab=IV) as served:
        yield served


def resource(bench: Served) -> str:
    return f"ASRL{os.path.realpath(str(bench.status['ports']['gpib']))}::INSTR"


def test_pymeasure_sources_sweeps_and_measures(bench: Served, tmp_path: Path) -> None:
    module = client("pymeasure.instruments.keithley")
    ends = {"read_termination": "\n", "write_termination": "\n"}
    smu = module.Keithley2400(resource(bench), visa_library="@py", timeout=3000, **ends)
    assert smu.id.startswith("KEITHLEY INSTRUMENTS INC.,MODEL 2400")
    smu.reset()
    smu.use_front_terminals()
    smu.apply_voltage(voltage_range=20, compliance_current=0.01)
    smu.measure_current(nplc=0.1, current=0.01, auto_range=False)
    assert smu.source_mode == "voltage"
    assert smu.source_voltage_range == 20
    assert smu.compliance_current == 0.01
    smu.wires = 4
    assert smu.wires == 4
    smu.source_delay = 0.01
    smu.source_voltage = 0.6
    smu.enable_source()
    assert smu.source_enabled
    smu.beep(440, 0.1)
    assert smu.current == pytest.approx(bench.truth()["current_a"], rel=1e-3)
    smu.ramp_to_voltage(0.65, steps=3, pause=0.01)
    assert smu.current == pytest.approx(bench.truth()["current_a"], rel=1e-3)
    smu.shutdown()
    assert not smu.source_enabled
    assert smu.check_errors() in ([], None)
    smu.apply_current(current_range=0.01, compliance_voltage=2)
    smu.source_current = 1e-3
    smu.enable_source()
    smu.measure_voltage()
    assert smu.voltage == pytest.approx(0.58, abs=0.01)
    smu.shutdown()
    smu.adapter.close()


def test_qcodes_sets_and_reads_it(bench: Served) -> None:
    module = client("qcodes.instrument_drivers.Keithley")
    smu = module.Keithley2400("smu", resource(bench), visalib="@py", timeout=3, terminator="\n")
    try:
        assert smu.get_idn()["model"] == "2400"
        smu.mode("VOLT")
        smu.sense("CURR")
        smu.compliancei(0.01)
        smu.rangev(20)
        smu.rangei(0.01)
        smu.nplci(0.1)
        smu.output(True)
        smu.volt(0.6)
        assert smu.curr() == pytest.approx(bench.truth()["current_a"], rel=1e-3)
        assert (smu.compliancei(), smu.nplci()) == (0.01, 0.1)
        smu.output(False)
        assert smu.mode() == "VOLT"
        assert smu.ask(":SYST:ERR?").startswith("0,")
    finally:
        smu.close()
