"""A guard process on a disk that can be made to stand still, at one file.

Run as a process of its own: ``still_disk.py FILE LAB [OPTION ...]``. Each opening of FILE waits as
long as ``FILE.still`` lies beside it, and makes ``FILE.waiting`` there first.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

from labharness.faces.cli import main

NAP_S = 0.005


def stand_still(name: str) -> None:
    """Let every opening of a file of this name wait, as a disk that does not answer does."""
    opens = os.open

    def still(path: Any, *rest: Any, **more: Any) -> int:
        if os.path.basename(path) == name:
            beside = Path(path).with_name(f"{name}.still")
            while beside.exists():
                beside.with_suffix(".waiting").touch()
                time.sleep(NAP_S)
        return opens(path, *rest, **more)

    os.open = still


if __name__ == "__main__":
    stand_still(sys.argv[1])
    sys.exit(main(["guard", *sys.argv[2:]]))
