"""The driver kit: all a driver author imports. Modbus is in ``driver.modbus``."""

from labharness.instruments.driver.ascii import decimal, line_request, number
from labharness.instruments.driver.channels import CONTACT, Channel, Identity, Query, Scan, While
from labharness.instruments.driver.driver import Driver, Exchange, fault
from labharness.instruments.driver.energy import INERT, Adds, Cools, Dark, Off
from labharness.instruments.driver.messages import message_request, results
from labharness.instruments.driver.programs import Block, Programmer
from labharness.instruments.driver.steps import kept

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
