"""python-microscope (GPL) on the simulated Cobolt laser and Prior controller."""

import pytest

from interop.conftest import client, terminal
from served import Served

pytestmark = pytest.mark.filterwarnings("ignore")  # a client's own


def test_it_lights_and_darkens_the_laser_and_sees_an_open_enclosure(lab: Served) -> None:
    cobolt = client("microscope.lights.cobolt")
    laser = cobolt.CoboltLaser(com=terminal(lab, "laser"), timeout=1.0)
    laser.power = 0.01  # of 100 mW
    laser.enable()
    assert laser.get_is_on()
    assert laser.get_status()[1] == "Target power: 0.001000"
    assert laser.send(b"ilk?") == b"0"
    lab.ask("fault", set={"enclosure_open": True})
    assert laser.send(b"ilk?") == b"1"
    assert laser.get_status()[3] == "Fault? 3"
    lab.ask("fault", set={"enclosure_open": False})
    laser.disable()
    assert not laser.get_is_on()
    assert laser.send(b"slmp 1") == b"Syntax error: illegal command"
    laser.shutdown()


def test_it_finds_the_controller_and_that_no_filter_wheel_is_fitted(lab: Served) -> None:
    prior = client("microscope.controllers.prior")
    controller = prior.ProScanIII(port=terminal(lab, "stage"), timeout=1.0)
    assert controller.devices == {}
    link = controller._conn
    link.move_command(b"GX,500")
    assert link.get_command(b"P") == b"500,0,0\r"
    link.move_command(b"GX,0")  # R has come: it stands, and takes the next move at once
    link.set_command(b"SMS,50")
    assert link.get_command(b"SMS") == b"50\r"
    with pytest.raises(RuntimeError, match="E,5"):
        link.set_command(b"JOYSTICK")
