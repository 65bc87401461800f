"""The long proof of the planted bugs: all of them, one after the other, with a table.

Run by ``make mutants``. The same list runs inside ``make test``; this prints who caught what.
"""

import sys
import tempfile
from pathlib import Path

from copies import make_copy, run_in
from planted_bugs import PLANTED

FAILED = 1


def main() -> int:
    """Plant each bug; give 1 if any survives."""
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = make_copy(Path(folder) / "copy")
        for bug in PLANTED:
            file = copy / bug.file
            healthy = file.read_text("utf-8")
            file.write_text(healthy.replace(bug.right, bug.wrong), "utf-8")
            caught = bug.right in healthy and run_in(copy, bug.test).returncode == FAILED
            file.write_text(healthy, "utf-8")
            survivors += not caught
            verdict = "caught" if caught else "SURVIVED"
            sys.stdout.write(f"{verdict:9} {bug.promise:42} {bug.test.partition('::')[2]}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(PLANTED) - survivors} caught, {survivors} survived\n")
    return 1 if survivors else 0


if __name__ == "__main__":
    raise SystemExit(main())
