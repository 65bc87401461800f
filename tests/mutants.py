"""The long proof of the planted bugs: all of them, one after the other, with a table.

Run by ``make mutants``. The same list runs inside ``make test``; this prints who caught what.
"""

import sys
import tempfile
from pathlib import Path

from copies import FAILED, copied
from planted_bugs import PLANTED


def main() -> int:
    """Plant each bug; give 1 if any survives."""
    survivors = 0
    with tempfile.TemporaryDirectory() as folder, copied(Path(folder) / "copy") as copy:
        for bug in PLANTED:
            with copy.wrong(bug.file, bug.right, bug.wrong):
                code, _ = copy.run(bug.test)
            survivors += code != FAILED
            verdict = "caught" if code == FAILED else "SURVIVED"
            sys.stdout.write(f"{verdict:9} {bug.promise:42} {bug.test.partition('::')[2]}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(PLANTED) - survivors} caught, {survivors} survived\n")
    return 1 if survivors else 0


if __name__ == "__main__":
    raise SystemExit(main())
