"""No damage to a file of spectra does more than have it refused in one plain line."""

import io
from collections.abc import Callable

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labharness.analysis.formats import (
    BadFile,
    NexusNotes,
    Recording,
    csv_text,
    nexus_bytes,
    read_spectra,
)
from packed_files import JCAMP as TEMPLATE
from packed_files import ROWS as WDF_ROWS
from packed_files import wdf
from rig import RAMAN
from spc_files import AXIS, ROWS, new_spc, old_spc, pairs_spc
from spectral_files import MADE, refusal

JCAMP = TEMPLATE.format(rows="400A000KT%Tm\n405A000n%Jo%r95\n411e").encode()


def real(name: str) -> bytes:
    return (RAMAN / name).read_bytes()


PLAIN = Recording("a test", np.linspace(100, 600, 60), "1/cm", np.arange(120.0).reshape(2, 60))
FILES: dict[str, Callable[[], bytes]] = MADE | {
    "SPC": lambda: new_spc(many=True, log=b"Laser = 532"),
    "SPC, even axis": lambda: new_spc(listed=False, exponent=10, bits=16),
    "SPC, big-endian": lambda: new_spc(order=">"),
    "SPC, pairs": lambda: pairs_spc([(AXIS, row) for row in ROWS], directory=True),
    "SPC, old": old_spc,
    "JCAMP-DX": lambda: JCAMP,
    "WDF": lambda: wdf(WDF_ROWS),
    "WITec": lambda: real("pynxtools_raman_apache2/Si-wafer-Raman-Spectrum-1.txt"),
    "ROD CIF": lambda: real("pynxtools_raman_apache2/rod_file_1000679.rod"),
    "LabSpec map, packed": lambda: real("wrighttools_mit/wt_raman_linescan.txt.gz"),
    "LabSpec text": lambda: real("cases/labspec_nm.txt"),
    "CSV": lambda: csv_text(PLAIN).encode(),
    "NeXus": lambda: nexus_bytes(PLAIN, NexusNotes(program="labharness 1")),
}
OWN_WORDS = ("despike", "Traceback", "numpy", "ndarray", "0x7f", "object at")
"""What a person who measures spectra has never heard of."""


def readable(data: bytes) -> bool:
    """Read, or refuse in one plain line; anything else fails the test."""
    try:
        found = read_spectra(data)
    except BadFile as why:
        said = str(why)
        assert said
        assert "\n" not in said
        assert not [word for word in OWN_WORDS if word in said]
        return False
    assert found.intensity.size
    assert np.isfinite(found.intensity).all()
    assert (np.diff(found.axis) > 0).all()
    return True


@pytest.mark.parametrize("name", FILES)
def test_each_file_is_read_while_it_is_whole(name: str) -> None:
    assert readable(FILES[name]())


def damaged(data: st.DataObject, whole: bytes) -> bytes:
    """Flip bytes, cut the end away, take a piece out, or change the locale."""
    found = bytearray(whole)
    for _ in range(data.draw(st.integers(0, 6))):
        found[data.draw(st.integers(0, len(found) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del found[data.draw(st.integers(1, len(found))) :]
    if data.draw(st.booleans()):
        start = data.draw(st.integers(0, len(found)))
        del found[start : start + data.draw(st.integers(0, 200))]
    old, new = data.draw(
        st.sampled_from([(b".", b","), (b",", b"."), (b",", b";"), (b"\n", b"\r\n"), (b"", b"")])
    )
    return bytes(found.replace(old, new)) if old else bytes(found)


@pytest.mark.parametrize("name", FILES)
@given(data=st.data())
@settings(deadline=2000, max_examples=12, suppress_health_check=[HealthCheck.too_slow])
def test_a_damaged_file_is_refused_or_read(name: str, data: st.DataObject) -> None:
    readable(damaged(data, FILES[name]()))


def test_a_file_that_ends_within_the_head_of_a_block_is_refused() -> None:
    data = FILES["WDF"]()
    at = data.index(b"XLST")
    assert not any(readable(data[:cut]) for cut in range(at, at + 40))


def test_a_place_on_the_axis_that_is_no_number_is_refused_or_left_out() -> None:
    lines = FILES["LabSpec text"]().splitlines()
    for number in (-1, -2):
        values = lines[number].split()
        readable(b"\n".join([*lines[:number], b"1e999\t" + values[-1], *lines[number:][1:]]))


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", FILES)
@given(data=st.data())
@settings(deadline=2000, max_examples=1500, suppress_health_check=[HealthCheck.too_slow])
def test_thousands_of_damaged_files_are_refused_or_read(name: str, data: st.DataObject) -> None:
    readable(damaged(data, FILES[name]()))


@pytest.mark.parametrize(
    "data",
    [
        b"1,2\n" * 40_000,
        b"9" * 400_000,
        JCAMP.replace(b"411e", b"411A" + b"S99999" * 20_000),
        JCAMP.replace(b"=12", b"=1000000000000"),
        JCAMP.replace(b"FIRSTX=400", b"FIRSTX=1e308"),
        b"\t" * 100_000 + b"1\n2\n",
        b"<LSX_Data>" + b"<LSX>" * 20_000 + b"</LSX>" * 20_000 + b"</LSX_Data>",
        b"{" * 100_000,
        b'{"a":' * 20_000,
    ],
    ids=["rows", "digits", "repeats", "points", "range", "tabs", "depth", "braces", "nested"],
)
def test_what_would_take_all_memory_or_time_is_refused_soon(data: bytes) -> None:
    readable(data)


def test_a_dataset_that_states_more_than_a_memory_holds_is_refused() -> None:
    memory = io.BytesIO()
    with h5py.File(memory, "w") as file:
        entry = file.create_group("entry")
        entry.attrs["NX_class"] = "NXentry"
        plot = entry.create_group("data")
        plot.attrs.update({"NX_class": "NXdata", "signal": "counts", "axes": ["shift"]})
        plot.create_dataset("counts", shape=(10**6, 10**6), dtype="f8", chunks=(1, 1000))
        plot.create_dataset("shift", data=np.arange(10.0))
        plot["shift"].attrs["units"] = "1/cm"
    with pytest.raises(BadFile, match="states a shape of"):
        read_spectra(memory.getvalue())


def test_what_a_message_quotes_of_a_file_cannot_steer_a_terminal() -> None:
    hostile = JCAMP.replace(b"RAMAN SPECTRUM", b"\x1b[2Jgone\r")
    assert refusal(hostile).isprintable()
    assert str(BadFile("one\ntwo\x1b")) == "one two "


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le"])
def test_text_of_another_encoding_is_read(encoding: str) -> None:
    text = (RAMAN / "raman_fitting_mit" / "Si_spectrum01.txt").read_text("utf-8")
    assert readable(text.encode(encoding))
