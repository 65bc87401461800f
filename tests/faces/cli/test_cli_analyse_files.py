"""``labharness analyse`` on files as people have them says what is left out and never crashes."""

import json
from pathlib import Path

import pytest

from commands import say
from labharness.analysis.formats import read_spectra

INTERNALS = ("despike", "Traceback", "ndarray", "px, got shape", "raised")


def rows(count: int, start: float = 300.0) -> str:
    """Write a spectrum of noise: it has scatter, and no line."""
    return "".join(f"{start + 2 * n}\t{900 + 37 * n % 61}\n" for n in range(count))


def test_a_headerless_labspec_map_is_saved_as_nexus_and_read_again(tmp_path: Path) -> None:
    path, saved = tmp_path / "map.txt", tmp_path / "m.nxs"
    lines = ["\t\t" + "\t".join(str(300 + 2 * k) for k in range(120))]
    for n, place in enumerate(["1.5\t2", "1.5\t4", "3\t2"]):
        lines.append("\t".join([place, *(str(900 + (37 + n) * k % 61) for k in range(120))]))
    path.write_text("\n".join(lines), "utf-8")
    said = say("analyse", "--json", "--save", saved, path)
    assert said.code == 1, said.err
    assert f"written: {saved}" in said.err
    found, first = read_spectra(saved.read_bytes()), read_spectra(path.read_bytes())
    assert found.intensity.tolist() == first.intensity.tolist()
    assert {name: column.tolist() for name, column in found.places.items()} == {
        name: column.tolist() for name, column in first.places.items()
    }
    assert say("analyse", saved).code == 1


def test_what_was_left_out_is_among_the_notes(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(rows(120).replace("304.0\t", "304.0\tx", 1), "utf-8")
    said = say("analyse", path)
    assert "note: line 3 is left out: it is not 2 numbers" in said.out
    (found,) = json.loads(say("analyse", "--json", path).out)
    assert found["notes"][0] == "line 3 is left out: it is not 2 numbers"


@pytest.mark.parametrize("count", [2, 5, 12, 16, 17, 19])
def test_too_few_points_are_said_in_plain_words(tmp_path: Path, count: int) -> None:
    path = tmp_path / "short.txt"
    path.write_text(rows(count), "utf-8")
    said = say("analyse", path)
    assert f"{path}: " in said.err
    assert "at least" in said.err
    assert str(count) in said.err.partition(str(path))[2]
    assert not [word for word in INTERNALS if word in said.err + said.out]


def test_an_office_file_is_told_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "table.xlsx"
    path.write_bytes(b"PK\x03\x04" + bytes(500))
    said = say("analyse", path)
    assert said.code == 64
    assert "it seems to be a ZIP archive or an Office file" in said.err
