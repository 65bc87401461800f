"""The base of every driver: it describes frames and reads replies, and does no I/O (law 4)."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import ClassVar

from labharness.core.vocabulary import DeviceFault, LengthAt, Message, Protocol, Request, Rtu
from labharness.core.vocabulary.texts import Text
from labharness.instruments.driver.channels import Channel, Identity, Query, Scan
from labharness.instruments.driver.energy import Off
from labharness.instruments.driver.programs import Programmer

Exchange = Generator[Request, bytes, None]
PROOF_S = 60.0  # the settings of an instrument are read at least so often


class Driver(ABC):
    """One kind of instrument, at one address of a port.

    A subclass is constructed with keyword settings from the lab file (an address, decimals, full
    scale), declares ``channels`` and answers ``scans``, ``queries`` and ``write``. It must be
    pure: the same arguments give the same frames.

    Attributes:
        channels: Every quantity, by name.
        renamed: For a channel that the lab file named, its name in the kind's envelope.
        baud: Speed the instrument leaves the factory with; 0 where there is no serial line.
        unverified: Facts of this driver without a manual (marked D or K); ``""`` when there are
            none. A lab that loads it on a real link is warned.
        protocol: Protocol of its frames. On Modbus a frame itself says whether it reads.
        write_grammar: Forms of the instrument's writing frames, if it does not speak Modbus:
            regular expressions over whole frames. A command's frame matches one of them, and no
            read of its port does. State all frames that the instrument would
            obey, not only those that this driver sends.
        programmer: Its programmer; ``None`` if it runs no programs.
        proves: Scans and queries whose replies are refused where the instrument is set otherwise
            than the lab file says: another gas, full scale or unit. They are read with the
            identity and each minute; while one is refused, no reading of the instrument counts.
        off: The ways in which it adds energy, each with its end; ``()`` if it adds none. While
            it is ``None`` the driver does not say, and a line on which it can be set is not armed.
    """

    channels: Mapping[str, Channel] = {}
    renamed: Mapping[str, str] = {}
    baud: ClassVar[int] = 9600
    unverified: ClassVar[str] = ""
    write_grammar: tuple[bytes, ...] = ()
    programmer: Programmer | None = None
    proves: ClassVar[tuple[str, ...]] = ()
    off: tuple[Off, ...] | None = None

    @property
    def protocol(self) -> Protocol:
        """Return how its frames are built."""
        return Protocol.TEXT

    @abstractmethod
    def scans(self) -> tuple[Scan, ...]:
        """Return the frames that read channels."""

    def queries(self) -> tuple[Query, ...]:
        """Return the exact frames that read anything else."""
        return ()

    def polled(self) -> tuple[Scan, ...]:
        """Return the scans that a line polls: those of the driver, and all that ``proves`` names.

        A setting can be changed at the instrument's front panel, so each is read every minute.
        """
        proofs = [_proof(each) for each in self.queries() if each.name in self.proves]
        return (*[self._often(each) for each in self.scans()], *proofs)

    def _often(self, scan: Scan) -> Scan:
        if scan.name not in self.proves:
            return scan
        return replace(scan, period_s=min(scan.period_s or PROOF_S, PROOF_S))

    @abstractmethod
    def identify(self) -> Query:
        """Return the frame that asks for the identity; it decodes to an ``Identity``."""

    def steps(self) -> tuple[Request, ...]:
        """Return the reads that prove its port in step after each reply.

        Their replies can be those to no other question: ``obeyed`` is their form, or they are
        always the same, as an identity is. ``()`` where every reply carries an address, a number or
        an echo of its question.
        """
        asks = self.identify().request
        return () if isinstance(asks.reply, Rtu | LengthAt | Message) else (asks,)

    @abstractmethod
    def expects(self, identity: Identity) -> str:
        """Return what is wrong with this identity for this driver; ``""`` when nothing is."""

    @abstractmethod
    def write(self, channel: str, value: float) -> tuple[Request, ...]:
        """Return the frames that set ``channel`` to ``value``, in order.

        Each states in ``obeyed`` which reply means that the instrument did it: without that no
        procedure can use the channel. A frame that is not answered (``Nothing``) states none.

        Raises:
            ValueError: The channel cannot be set, or the value does not fit the wire's encoding
                (refused, never clipped).
        """

    def sent(self, channel: str, value: float) -> float:
        """Return the value that the frames of ``write`` carry: the nearest step of the encoding.

        The gate judges this value beside the one that was asked.

        Raises:
            ValueError: As ``write``.
        """
        return value

    def accept(self, channel: str, reply: bytes) -> None:
        """Check one reply to ``write``; raise ``DeviceFault`` when the instrument refused."""
        return  # the reply rule has checked its form; an instrument that cannot refuse adds nothing

    def shown(self, channel: str, value: float) -> Request | None:
        """Return the read that shows ``channel`` at ``value``, for a guard that is alone.

        Its ``obeyed`` matches those replies, and no other. ``None`` where no single read shows it.
        """
        return None

    def encode(self, channel: str, value: float) -> Exchange:
        """Yield each frame of a command and take its reply; the shell does the sending."""
        for request in self.write(channel, value):
            reply = yield request
            self.accept(channel, reply)

    def settable(self, channel: str) -> Channel:
        """Return a channel that can be set.

        Raises:
            ValueError: It cannot; the message names those that can.
        """
        spec = self.channels.get(channel)
        if spec is None or not spec.settable:
            known = ", ".join(name for name, each in self.channels.items() if each.settable)
            raise ValueError(Text("channel.not_settable", channel=channel, known=known))
        return spec


def _proof(query: Query) -> Scan:
    """Return a query as a scan of no channel: its reply is checked, and kept nowhere."""

    def checked(reply: bytes) -> tuple[float, ...]:
        query.decode(reply)
        return ()

    return Scan(query.name, query.request, (), checked, PROOF_S, before=query.before)


def fault(channel: str, said: str) -> DeviceFault:
    """Make the error for an instrument that answered with a refusal."""
    return DeviceFault(f"{channel}: the instrument answered {said}")
