"""minimalmodbus on the simulated Eurotherm controllers, two on one line."""

import pytest

from interop.conftest import client, terminal
from served import Served

pytestmark = pytest.mark.filterwarnings("ignore")  # a client's own


def test_it_reads_sets_and_is_told_what_is_refused(lab: Served) -> None:
    minimalmodbus = client("minimalmodbus")
    for unit in (1, 2):
        furnace = minimalmodbus.Instrument(terminal(lab, "heat"), unit)
        furnace.serial.baudrate = 19200
        furnace.serial.timeout = 1.0
        assert 10 < furnace.read_register(1, number_of_decimals=1) < 40
        furnace.write_register(2, 25.0 + unit, number_of_decimals=1, functioncode=6)
        assert furnace.read_register(2, number_of_decimals=1) == 25.0 + unit
        furnace.write_register(2, 0, functioncode=6)
        with pytest.raises(minimalmodbus.IllegalRequestError):
            furnace.read_register(60_000)
        furnace.serial.close()
