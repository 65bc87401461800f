"""The lab file that a served lab is given: what was in the first, on other links."""

from pathlib import Path

from commands import edited_lab
from labharness.lab import read_lab
from labharness.lab.config.served_file import ServedLinks, served_text

ALERT = """[[alert]]
name = "pager"
url = "jsons://somebody:secret@pager.invalid/call"

"""


def test_the_alerts_of_a_lab_are_those_of_the_served_one(tmp_path: Path) -> None:
    """Their addresses are secrets: masked, the text would be no lab file."""
    lab = read_lab(edited_lab(tmp_path, "[operator]\n", f"{ALERT}[operator]\n"))
    links = {
        row.name: f"/dev/served-{row.name}" if row.baud else f"127.0.0.1:{1000 + number}"
        for number, row in enumerate(lab.file.port)
    }
    target = tmp_path / "served.toml"
    target.write_text(served_text(lab, ServedLinks("127.0.0.1:1", links)), "utf-8")
    (served,) = read_lab(target).file.alert
    assert served.url.get_secret_value() == "jsons://somebody:secret@pager.invalid/call"
