"""PyMeasure's MKS driver on the simulated pressure transducer."""

import pytest
import serial

from interop.conftest import client, terminal
from served import Served

pytestmark = pytest.mark.filterwarnings("ignore")  # a client's own


def test_it_reads_sets_and_is_told_what_is_refused(lab: Served) -> None:
    adapters = client("pymeasure.adapters")
    mks = client("pymeasure.instruments.mksinst.mks974b")
    with serial.Serial(terminal(lab, "vacuum"), 9600, timeout=1.0) as port:
        adapter = adapters.SerialAdapter(port, read_termination=";", write_termination=";FF")
        gauge = mks.MKS974B(adapter)
        assert gauge.id() == "MKS910 DUALTRANS (0000001234)"
        assert gauge.pressure * 133.322 == pytest.approx(lab.truth()["pressure_pa"], rel=0.05)
        assert gauge.status == "Ok"
        gauge.unit = mks.Unit.mbar
        assert gauge.unit == mks.Unit.mbar
        gauge.unit = mks.Unit.Torr
        with pytest.raises(ValueError, match="NAK160"):
            gauge.user_tag = "MINE"
