"""An unverified driver on a real link is accepted once, by name and date, in the lab file."""

import re
from datetime import timedelta
from pathlib import Path

import pytest

from commands import say
from examined import NODE, NOON, findings, serial_lab, well
from labharness.lab import BadLabFile, LabPlan, read_lab
from labharness.lab.doctor.findings import examine

TODAY = NOON.date()


def asked(plan: LabPlan) -> dict[str, str]:
    """The line that the doctor prints for each instrument with a doubt."""
    fixes = [each.fix for each in findings(plan, well()) if each.about == "drivers"]
    named = (each.partition("under [[instrument]] ")[2].partition(": ") for each in fixes)
    return {name: line for name, _, line in named}


def accept(plan: LabPlan, **changes: str) -> LabPlan:
    """Paste for each doubt the line that the doctor prints, with a name in it."""
    text = plan.path.read_text("utf-8")
    for name, printed in asked(plan).items():
        line = printed.replace("NAME", "Ada Lovelace")
        for old, new in changes.items():
            line = re.sub(rf"{old} = [^,}}]+", f"{old} = {new} ".rstrip(), line)
        named = f'[[instrument]]\nname = "{name}"\n'
        assert named in text
        text = text.replace(named, f"{named}{line}\n")
    plan.path.write_text(text, "utf-8")
    return read_lab(plan.path)


def test_what_somebody_accepted_is_said_and_found_no_more(tmp_path: Path) -> None:
    plan = serial_lab(tmp_path, NODE)
    doubts = asked(plan)
    assert len(doubts) == len(plan.warnings()) > 0
    plan = accept(plan)
    assert asked(plan) == {}
    said = [each.said for each in examine(plan, well()) if each.about == "drivers"]
    assert all(each.endswith(f"accepted by Ada Lovelace on {TODAY}") for each in said)
    assert len(said) == len(doubts)


def test_a_lab_on_real_ports_can_be_clean(tmp_path: Path) -> None:
    plan = accept(serial_lab(tmp_path, NODE))
    text = plan.path.read_text("utf-8")
    plan.path.write_text(re.sub(r"(?m)^approvals = .*$", "", text), "utf-8")  # of simulated labs
    assert findings(read_lab(plan.path), well(approvals={})) == []


@pytest.mark.parametrize(
    "changes",
    [{"on": str(TODAY + timedelta(days=1))}, {"doubt": '"00000000"'}],
    ids=["tomorrow", "another doubt"],
)
def test_an_acceptance_of_tomorrow_or_of_something_else_counts_for_nothing(
    tmp_path: Path, changes: dict[str, str]
) -> None:
    assert asked(accept(serial_lab(tmp_path, NODE), **changes))


def test_words_that_a_later_driver_changes_are_asked_of_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = accept(serial_lab(tmp_path, NODE))
    monkeypatch.setattr(type(plan.by_name["furnace"].driver), "unverified", "all of it")
    assert "furnace" in asked(plan)


@pytest.mark.parametrize("name", ['"NAME"', '""', '"\u0410da Lovelace"'])
def test_nobody_accepts_nothing(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadLabFile, match=r"accepted\.by"):
        accept(serial_lab(tmp_path, NODE), by=name)


def test_who_runs_the_lab_is_told_of_the_doubt_all_the_same(tmp_path: Path) -> None:
    plan = accept(serial_lab(tmp_path, NODE))
    assert plan.warnings()
    assert "is unverified" in say("lab", "check", "--lab", plan.path).out
