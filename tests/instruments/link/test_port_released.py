"""A port that is closed can be opened by any account, also where its terminal stays open."""

import os
import struct
import sys

import pytest

from labharness.instruments.link.descriptors import SerialDescriptor

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
