"""The driver kit: all a driver author imports. Modbus is in ``labharness.driver.modbus``."""

from labharness.driver.ascii import line_request, number
from labharness.driver.channels import Channel, Identity, Query, Scan
from labharness.driver.driver import Driver, Exchange, fault
from labharness.driver.messages import message_request, results

__all__ = [
    "Channel",
    "Driver",
    "Exchange",
    "Identity",
    "Query",
    "Scan",
    "fault",
    "line_request",
    "message_request",
    "number",
    "results",
]
