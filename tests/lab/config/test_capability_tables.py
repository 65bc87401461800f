"""A lab offers the capabilities that its file has a table of, and each reads its own table."""

from pathlib import Path

from commands import edited_lab, say
from labharness.lab import read_lab
from labharness.lab.config.lab_facts import lab_facts_of
from rig import SHORT_LINE
from small_lab import written

HOME = "capability.cvd-material-synthesis"


def test_a_lab_offers_what_it_has_a_table_of(tmp_path: Path) -> None:
    assert set(lab_facts_of(read_lab(SHORT_LINE)).capabilities) == {"cvd-material-synthesis"}
    assert lab_facts_of(read_lab(written(tmp_path))).capabilities == {}


def test_whoever_has_the_tables_of_before_is_told_their_new_names(tmp_path: Path) -> None:
    text = edited_lab(tmp_path, 'title = "Short', 'title = "The').read_text("utf-8")
    text = text.replace(f"[{HOME}.growth]", "[growth]").replace(f"[{HOME}", "[raman")
    (tmp_path / "lab.toml").write_text(text, "utf-8")
    said = say("lab", "check", "--lab", tmp_path / "lab.toml")
    said.is_one_plain_error(
        f"[raman] is now [{HOME}], [raman.a1g_si] is now [{HOME}.a1g_si]",
        f"[raman.pl_raman] is now [{HOME}.pl_raman]",
        f"[growth] is now [{HOME}.growth]",
    )


def test_all_that_is_wrong_in_the_tables_is_named_at_once(tmp_path: Path) -> None:
    more = f"[{HOME}]\nlaser = 532\n\n[{HOME}.a1g_si]\nvalue = -1\n\n[capability.aneal]\n"
    lab = written(tmp_path)
    lab.write_text(lab.read_text("utf-8") + more, "utf-8")
    (tmp_path / "callers.toml").write_text("[caller]\n", "utf-8")
    said = say("lab", "check", "--lab", lab)
    said.is_one_plain_error(
        f"[{HOME}] a1g_si.value: -1 should be greater than 0",
        "laser: there is no such key (did you mean laser_nm?)",
        "laser_nm: it is missing",
        "a1g_si.uncertainty: it is missing",
        "[capability.aneal]: no such capability",
        "callers: it is missing",
        "callers file: caller: there is no such key (did you mean callers?)",
    )


def test_a_growth_on_a_line_that_counts_no_purge_is_a_finding(tmp_path: Path) -> None:
    lab = written(tmp_path)
    text = lab.read_text("utf-8").replace("[tube]\nvolume_cm3 = 1000\n\n", "")
    lab.write_text(f"{text}\n[{HOME}]\nlaser_nm = 532\n", "utf-8")
    envelope = tmp_path / "envelope.toml"
    envelope.write_text(envelope.read_text("utf-8").partition("[purge]")[0], "utf-8")
    said = say("lab", "check", "--lab", lab)
    assert said.code == 1
    assert "cvd-material-synthesis: a growth purges the tube: give [tube] volume_cm3" in said.out


def test_a_capability_that_is_meant_is_named_by_its_name(tmp_path: Path) -> None:
    lab = written(tmp_path)
    lab.write_text(lab.read_text("utf-8") + "[capability.anealing]\n", "utf-8")
    (tmp_path / "callers.toml").write_text("[caller]\n", "utf-8")
    said = say("lab", "check", "--lab", lab)
    assert "(did you mean annealing?)" in said.err
    assert "0x" not in said.err, "the address of an object"
