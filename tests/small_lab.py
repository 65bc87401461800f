"""A small lab as somebody writes it who has one furnace and one flow controller: the example's."""

from pathlib import Path

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "small-lab"

OFF = """
    ["furnace.mode", 1],
    ["furnace.output", 0],
"""
"""The steps that switch the furnace off, in their order."""


def written(folder: Path, *, steps: str = OFF, gas: str = "Ar", more: str = "") -> Path:
    """Write the lab's four files; return the lab file.

    Args:
        folder: Where.
        steps: Of its one procedure.
        gas: What its flow controller lets in.
        more: Further rows of the envelope file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    texts = {each.name: each.read_text("utf-8") for each in EXAMPLE.glob("*.toml")}
    for name, old, new in (
        ("lab.toml", "/var/lib/labharness/annealing", (folder / "state").as_posix()),
        ("lab.toml", 'gas = "Ar"', f'gas = "{gas}"'),
        ("envelope.toml", OFF.strip("\n"), steps.strip("\n")),
        ("hazards.toml", "proof_days = 365", "proof_tested = 2026-11-01\nproof_days = 3650"),
    ):
        assert old in texts[name], (name, old)
        texts[name] = texts[name].replace(old, new)
    for name, text in texts.items():
        (folder / name).write_text(text + (more if name == "envelope.toml" else ""), "utf-8")
    return folder / "lab.toml"
