"""A command on a disk that can be made full.

Run as a process of its own: ``full_disk.py MARK COMMAND ...``. As long as a file MARK is there, no
byte is free on any disk.
"""

import shutil
import sys
from pathlib import Path
from typing import Any

from labharness.faces.cli import main


def fill_up(mark: Path) -> None:
    """Let every disk be full while a file is there."""
    told = shutil.disk_usage

    def usage(path: Any) -> Any:
        total, used, free = told(path)
        return (total, used + free, 0) if mark.exists() else (total, used, free)

    shutil.disk_usage = usage


if __name__ == "__main__":
    fill_up(Path(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
