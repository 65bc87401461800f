"""Planted bugs in latch and lock: what keeps a line shut, and lets one owner drive it."""

from planted_bug import PlantedBug

__all__ = ["IN_LATCH_AND_LOCK"]

IN_LATCH_AND_LOCK = (
    PlantedBug(
        "latch that is a dangling link taken for none",
        "labharness/guard/latch.py",
        "        if is_there(path):",
        "        if path.exists():",
        "tests/test_named_files.py::test_a_latch_that_is_no_file_is_a_latch",
    ),
    PlantedBug(
        "pipe in a file's place waited for",
        "labharness/guard/named.py",
        "    handle = os.open(path, os.O_RDONLY | NO_WAIT | BINARY)",
        "    handle = os.open(path, os.O_RDONLY | BINARY)",
        "tests/test_named_files.py::test_a_pipe_put_there_after_the_look_is_not_waited_for",
    ),
    PlantedBug(
        "line not made safe because its lock is no file",
        "labharness/lab/care.py",
        "    except OSError:\n        return nullcontext()",
        "    except ZeroDivisionError:\n        return nullcontext()",
        "tests/test_named_files.py::test_no_other_file_of_a_line_is_waited_for[line.lock-pipe]",
    ),
)
