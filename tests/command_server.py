"""Commands in processes of their own, each forked from one that has imported the code already.

A third of the tests' time went into importing it three hundred times. The process that forks runs
no command, no loop and no thread itself, so that each command finds what a fresh one would find.
"""

import ctypes
import importlib
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

MODULES = ("hand", "report", "run")  # of the command line; these import nearly all of the code
CAPABILITIES_VERSION = 0x20080522  # linux/capability.h, _LINUX_CAPABILITY_VERSION_3
TIMEOUT_S = 60
PIPE_BYTES = 65_536


def run_command(
    arguments: Sequence[str], *, disk: int | None = None, privileged: bool = True
) -> tuple[int, str, str]:
    """Run ``labharness`` in a process of its own, and wait for its end.

    Args:
        arguments: Its words.
        disk: Size beyond which no file may grow, bytes.
        privileged: Whether root's rights stay.

    Returns:
        Exit code, standard output, standard error.
    """
    server = _server()
    request = {
        "arguments": list(arguments),
        "directory": str(Path.cwd()),
        "environment": dict(os.environ),
        "disk": disk,
        "privileged": privileged,
    }
    _pipe(server.stdin).write(json.dumps(request) + "\n")
    _pipe(server.stdin).flush()
    code, out, err = json.loads(_pipe(server.stdout).readline())
    return code, out, err


@cache
def _server() -> "subprocess.Popen[str]":
    """Start this worker's server; it ends with its standard input, that is with the worker."""
    return subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def _serve() -> None:
    """Fork for each line of standard input, and answer with exit code and output."""
    for name in MODULES:
        importlib.import_module(f"labharness.faces.cli.{name}")
    for line in sys.stdin:
        pipes = [os.pipe() for _ in range(2)]
        child = os.fork()
        if child == 0:
            signal.alarm(TIMEOUT_S)
            _be_the_command(json.loads(line), [end for _, end in pipes])
        for _, end in pipes:
            os.close(end)
        said = [text.decode() for text in _read_all([end for end, _ in pipes])]
        _, status = os.waitpid(child, 0)
        sys.stdout.write(json.dumps([os.waitstatus_to_exitcode(status), *said]) + "\n")
        sys.stdout.flush()


def _read_all(ends: Sequence[int]) -> list[bytes]:
    """Read pipes to their ends, side by side."""
    found = dict.fromkeys(ends, b"")
    with selectors.DefaultSelector() as selector:
        for end in ends:
            selector.register(end, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                data = os.read(key.fd, PIPE_BYTES)
                found[key.fd] += data
                if not data:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    return list(found.values())


def _be_the_command(request: Mapping[str, Any], ends: Sequence[int]) -> None:
    """Run the command with its streams, directory, environment and limits; do not return."""
    code = 1
    try:
        for number, end in enumerate([os.open(os.devnull, os.O_RDONLY), *ends]):
            os.dup2(end, number)
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(number, mode, encoding="utf-8") for number, mode in enumerate("rww")
        )
        os.closerange(3, max(*ends) + 1)
        os.chdir(request["directory"])
        os.environ.clear()
        os.environ.update(request["environment"])
        if request["disk"] is not None:
            sys.dont_write_bytecode = True  # half a compiled module would stay (gh-126606)
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (request["disk"], request["disk"]))
        if not request["privileged"]:
            none, head = (ctypes.c_uint32 * 6)(), (ctypes.c_uint32 * 2)(CAPABILITIES_VERSION, 0)
            assert ctypes.CDLL(None).capset(head, none) == 0
        code = importlib.import_module("labharness.faces.cli").main(request["arguments"])
    except SystemExit as gone:  # argparse leaves so
        code = int(gone.code or 0)
    except BaseException:  # noqa: BLE001 - what a fresh Python would print
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
