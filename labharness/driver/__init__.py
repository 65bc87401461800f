"""The driver kit: all a driver author imports. Modbus is in ``labharness.driver.modbus``."""

from labharness.driver.ascii import decimal, line_request, number
from labharness.driver.channels import CONTACT, Channel, Identity, Query, Scan, While
from labharness.driver.driver import Driver, Exchange, fault
from labharness.driver.energy import INERT, Adds, Cools, Dark, Off
from labharness.driver.messages import message_request, results
from labharness.driver.programs import Block, Programmer
from labharness.driver.steps import kept

__all__ = [
    "CONTACT",
    "INERT",
    "Adds",
    "Block",
    "Channel",
    "Cools",
    "Dark",
    "Driver",
    "Exchange",
    "Identity",
    "Off",
    "Programmer",
    "Query",
    "Scan",
    "While",
    "decimal",
    "fault",
    "kept",
    "line_request",
    "message_request",
    "number",
    "results",
]
