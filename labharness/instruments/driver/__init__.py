"""The driver kit: all a driver author imports. Modbus is in ``driver.modbus``."""

from labharness.instruments.driver.ascii import (
    among,
    decimal,
    line_request,
    number,
    scientific,
    text,
    whole,
)
from labharness.instruments.driver.ascii_table import Ascii, AsciiDriver, Several, Who
from labharness.instruments.driver.channels import CONTACT, Channel, Identity, Query, Scan, While
from labharness.instruments.driver.driver import Driver, Exchange, fault
from labharness.instruments.driver.energy import INERT, Adds, Cools, Dark, Off, flowing
from labharness.instruments.driver.messages import message_request, results
from labharness.instruments.driver.programs import Block, Programmer
from labharness.instruments.driver.steps import kept
from labharness.instruments.driver.table import ANY, ChannelRow, TableDriver, Wants, of, within

__all__ = [
    "ANY",
    "CONTACT",
    "INERT",
    "Adds",
    "Ascii",
    "AsciiDriver",
    "Block",
    "Channel",
    "ChannelRow",
    "Cools",
    "Dark",
    "Driver",
    "Exchange",
    "Identity",
    "Off",
    "Programmer",
    "Query",
    "Scan",
    "Several",
    "TableDriver",
    "Wants",
    "While",
    "Who",
    "among",
    "decimal",
    "fault",
    "flowing",
    "kept",
    "line_request",
    "message_request",
    "number",
    "of",
    "results",
    "scientific",
    "text",
    "whole",
    "within",
]
