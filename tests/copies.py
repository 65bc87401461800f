"""A copy of the code in which a bug can be planted, and a test run against the copy."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["DRAWERS", "make_copy", "run_in"]

ROOT = Path(__file__).parent.parent
DRAWERS = ("labharness", "drivers", "simulators", "envelopes", "tests", "examples", "docs")
TEST_S_MAX = 120.0


def make_copy(folder: Path) -> Path:
    """Copy the code and its tests."""
    for drawer in DRAWERS:
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / drawer, folder / drawer, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def run_in(copy: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    """Run tests of the copy against the code of the copy."""
    paths = [copy, *(copy / drawer for drawer in ("drivers", "simulators", "envelopes"))]
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(path) for path in paths),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    return subprocess.run(
        command, cwd=copy, env=env, capture_output=True, text=True, timeout=TEST_S_MAX, check=False
    )
