"""pymodbus's client on the simulated relay board and the Alicat BASIS 2."""

import pytest

from interop.conftest import client, terminal
from served import Served

pytestmark = pytest.mark.filterwarnings("ignore")  # a client's own


def test_it_reads_sets_and_is_told_what_is_refused_by_a_relay_board(lab: Served) -> None:
    pymodbus = client("pymodbus.client")
    board = pymodbus.ModbusSerialClient(terminal(lab, "relays"), baudrate=9600, timeout=1)
    assert board.connect()
    before = board.read_coils(0, count=8, device_id=1).bits
    assert not board.write_coil(0, True, device_id=1).isError()
    assert board.read_coils(0, count=8, device_id=1).bits == [True, *before[1:]]
    assert not board.write_coil(0, bool(before[0]), device_id=1).isError()
    assert len(board.read_discrete_inputs(0, count=8, device_id=1).bits) == 8
    assert board.write_coil(0x0200, True, device_id=1).isError()  # a flash coil: not simulated
    board.close()


def test_it_reads_sets_and_is_told_what_is_refused_by_a_flow_controller(lab: Served) -> None:
    pymodbus = client("pymodbus.client")
    hydrogen = pymodbus.ModbusSerialClient(terminal(lab, "hydrogen"), baudrate=38400, timeout=1)
    assert hydrogen.connect()
    assert hydrogen.read_holding_registers(2100, count=1, device_id=1).registers == [6]
    assert not hydrogen.write_registers(2053, [0, 5000], device_id=1).isError()  # 5.000 sccm
    assert hydrogen.read_holding_registers(2106, count=1, device_id=1).registers == [500]
    assert not hydrogen.write_registers(2053, [0, 0], device_id=1).isError()
    assert hydrogen.write_registers(9000, [1], device_id=1).isError()
    hydrogen.close()
