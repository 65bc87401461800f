"""Programs that an instrument stores: blocks that are written, and their read-backs."""

from collections.abc import Callable
from dataclasses import dataclass

from labharness.core.vocabulary import Program, Request
from labharness.instruments.driver.channels import Query


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a stored program that is written by one frame and read back by one.

    Attributes:
        name: Its name in messages.
        write: The frame that stores it.
        read: One of the driver's ``queries``; what it decodes to is compared with ``holds``.
        holds: The read-back of an instrument that has it.
    """

    name: str
    write: Request
    read: Query
    holds: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Programmer:
    """The programmer of an instrument that has one.

    Attributes:
        setpoint: Channel that a segment's target is judged as.
        rate: Channel that a ramp's rate is judged as.
        status: Channel that starts, holds and resets, and shows what it does.
        number: Channel that says which of the stored programs is run.
        slot: The one that this driver may write.
        reset: Value of ``status`` for no program.
        run: Value for a running one.
        hold: Value for one that stands still.
        complete: Value for one that ended and was not reset.
        empty: The program's first block as one that ends at once: while a program is written,
            no person can start half of it.
        blocks: Returns a program's blocks in the order in which they are written, the first segment
            last. Raises ``ValueError`` for one that the instrument cannot hold exactly.
    """

    setpoint: str
    rate: str
    status: str
    number: str
    slot: int
    reset: float
    run: float
    hold: float
    complete: float
    empty: Block
    blocks: Callable[[Program], tuple[Block, ...]]
