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


Edits = tuple[tuple[str, str, str], ...]
PLATE = 'unit = "degC"\nsource = "its plate, and'
KELVIN = ("envelope.toml", PLATE, PLATE.replace("degC", "K"))
EDITS: dict[str, Edits] = {
    "keys": (
        ("lab.toml", 'title = "Annealing in argon"', 'titel = "Annealing in argon"'),
        ("lab.toml", 'attended = "always"', 'attended = "sometimes"'),
        ("lab.toml", "volume_cm3 = 1000", 'volume_cm3 = "1 L"'),
        ("lab.toml", 'link = "serial"', 'link = "usb"'),
        ("lab.toml", "baud = 19200", "baud = -1"),
    ),
    "rows": (
        ("lab.toml", "[tube]\nvolume_cm3 = 1000", ""),
        ("lab.toml", 'port = "gas"', 'port = "gass"'),
    ),
    "instruments and envelope": (
        ("lab.toml", "unit = 1", "unit = 1, decimals = 7"),
        ("lab.toml", 'kind = "alicat_mc"', 'kind = "alicat"'),
        ("envelope.toml", "stale_s = 3.5", "stale = 3.5"),
        ("envelope.toml", "[purge]", "[purges]"),
    ),
    "limits": (
        ("envelope.toml", 'channel = "furnace.output_high"', 'channel = "mfc.setpoint"'),
        ("envelope.toml", '["furnace.mode", 1]', '["furnace.mod", 1], ["oven.mode", 1]'),
        ("envelope.toml", "high = 850", "high = 8500"),
    ),
    "watches": (
        ("envelope.toml", '[[watch]]\nchannel = "mfc.flow"', '[[watch]]\nchannel = "mfc.flw"'),
        KELVIN,
    ),
    "a watch more": (
        (
            "envelope.toml",
            "[[interlock]]",
            '[[watch]]\nchannel = "mfc.flw"\nstale_s = 3.5\n\n[[interlock]]',
        ),
        KELVIN,
    ),
    "procedure": (
        ("envelope.toml", '    ["furnace.mode", 1],\n    ["furnace.output", 0],\n', ""),
        ("envelope.toml", "stale_s = 3.5", "stale_s = 0.1"),
    ),
    "harm": (
        ("lab.toml", 'callers = "callers.toml"\n', ""),
        ("lab.toml", 'hazards = "hazards.toml"\n', ""),
    ),
    "toml": (("lab.toml", "[lab]", "[lab"),),
    "callers": (("callers.toml", "[callers", "[caller"),),
}
"""What is wrong in its files, by its subject: the file, what stands there, and what instead."""


def edited(folder: Path, edits: Edits) -> Path:
    """Return the small lab with something wrong in it."""
    lab = written(folder)
    for file, old, new in edits:
        path = folder / file
        text = path.read_text("utf-8")
        assert old in text, old
        path.write_text(text.replace(old, new, 1), "utf-8")
    return lab
