"""A real wire between a served instrument and the harness, on which a line comes by itself."""

import os
import select
import threading
import tty
from collections.abc import Mapping
from pathlib import Path


class StrayWire:
    """A pseudo-terminal that passes on what a served instrument's port says, and adds lines.

    Attributes:
        asked: Every frame that passed.

    Args:
        there: The served port.
        strays: By question, the line that comes before the next answer to it, once.
    """

    def __init__(self, there: str, strays: Mapping[bytes, bytes]) -> None:
        self.asked: list[bytes] = []
        self.strays = dict(strays)
        self._far = os.open(there, os.O_RDWR | os.O_NOCTTY)
        self._near, self._slave = os.openpty()
        for each in (self._far, self._slave):
            tty.setraw(each)
        self.path = os.ttyname(self._slave)
        self._stop_r, self._stop_w = os.pipe()
        self._thread = threading.Thread(target=self._pass_on, daemon=True)
        self._thread.start()

    def put_into(self, lab_file: Path, there: str) -> None:
        """Have a lab file lead here instead of to the served port."""
        text = lab_file.read_text("utf-8")
        assert there in text
        lab_file.write_text(text.replace(there, self.path), "utf-8")

    def _pass_on(self) -> None:
        while True:
            ready, _, _ = select.select([self._stop_r, self._near, self._far], [], [])
            if self._stop_r in ready:
                return
            if self._near in ready:
                said = os.read(self._near, 4096)
                self.asked.append(said)
                stray = self.strays.pop(said, b"")
                if stray:
                    os.write(self._near, stray)
                os.write(self._far, said)
            if self._far in ready:
                os.write(self._near, os.read(self._far, 4096))

    def close(self) -> None:
        os.write(self._stop_w, b"x")
        self._thread.join(10.0)
        for each in (self._far, self._near, self._slave, self._stop_r, self._stop_w):
            os.close(each)
