"""A bug is planted where it is meant to be, whatever the code around it looks like."""

import pytest

from planting import file_of, plant

MODULE = """
LIMIT_S = 2.0

class Gate:
    def let(self, frame: bytes) -> bool:
        # a comment
        if frame  not in (self
                .reads):
            self.count += 1
            return False
        return True

    def shut(self) -> None:
        self.epoch += 1
        self.permits.clear()
"""


@pytest.mark.parametrize(
    ("where", "right", "wrong", "expected"),
    [
        ("labharness.b:Gate.let", "frame not in self.reads", "False", "if (False):"),
        (
            "labharness.b:Gate",
            "self.epoch += 1\nself.permits.clear()",
            "",
            "-> None:\n        pass\n",
        ),
        (
            "labharness.b:Gate.let",
            "self.count += 1",
            "self.count += 2\nprint()",
            "+= 2\n            print()\n",
        ),
        ("labharness.b", "LIMIT_S = 2.0", "LIMIT_S = 9.0", "LIMIT_S = 9.0\n"),
    ],
)
def test_one_place_becomes_another(where: str, right: str, wrong: str, expected: str) -> None:
    planted = plant(MODULE, where, right, wrong)
    assert expected in planted
    compile(planted, "planted", "exec")


@pytest.mark.parametrize(
    ("where", "right", "said"),
    [
        ("labharness.b:Gate.open", "True", "open is missing"),
        ("labharness.b:Gate.shut", "frame not in self.reads", "0 times"),
        ("labharness.b:Gate", "self", "4 times"),
    ],
)
def test_what_is_not_there_once_is_an_error(where: str, right: str, said: str) -> None:
    with pytest.raises(LookupError, match=said):
        plant(MODULE, where, right, "False")


def test_a_row_is_found_by_its_name() -> None:
    rows = '[[row]]\nname = "one"\nhigh = 1\n[[row]]\nname = "two"\nhigh = 1\n'
    assert plant(rows, "a/b.toml:two", "high = 1", "high = 9").endswith("high = 9\n")
    with pytest.raises(LookupError, match=r"\[1, 1\]"):
        plant(rows, "a/b.toml:row", "high = 1", "high = 9")


def test_a_symbol_leads_to_its_file() -> None:
    assert file_of("labharness.safety.guard.core:Port") == "labharness/safety/guard/core.py"
    assert file_of("labharness_drivers.mks_910") == "drivers/labharness_drivers/mks_910.py"
    assert file_of("envelopes/x.toml:a row") == "envelopes/x.toml"
