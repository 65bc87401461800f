"""Run all benchmarks, one after the other (``make bench``)."""

import subprocess
import sys
from pathlib import Path

BENCHMARKS = (
    "startup.py",
    "judge.py",
    "loop.py",
    "journal.py",
    "guard.py",
    "whole_process.py",
    "preflight.py",
    "fit.py",
    "analyse.py",
    "service.py",
    "service_events.py",
    "mcp_calls.py",
)


def main() -> int:
    folder = Path(__file__).parent
    failed = 0
    for name in BENCHMARKS:
        failed += subprocess.run([sys.executable, str(folder / name)], check=False).returncode != 0
        print(flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
