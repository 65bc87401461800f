"""Recognise files that are not read here, and say how to export their spectra.

Signatures are from the formats' own descriptions and libmagic; those of spectrometers from public
readers. None of these files is opened any further.
"""

TEXT = "save its spectra as text or CSV"

SIGNATURES: tuple[tuple[int, bytes, str], ...] = (
    (0, b"PK\x03\x04", "a ZIP archive or an Office file (.xlsx, .docx); unpack it, or {text}"),
    (0, b"\xd0\xcf\x11\xe0", "an OLE file, as Excel .xls and JASCO .jws are; {text} there"),
    (0, b"WIT_PR", "a WITec project (.wip); export its data as ASCII or {text}"),
    (0, b"WIT^", "a WITec project (.wip); export its data as ASCII or {text}"),
    (0, b"\n\n\xfe\xfe", "a Bruker OPUS file; {text} in OPUS"),
    (0, b"Andor Technology", "an Andor SIF file; {text} in Solis"),
    (0, b"Spectral Data File", "a Thermo OMNIC spectrum (.spa); {text} in OMNIC"),
    (0, b"Spectral Exte File", "a Thermo OMNIC group (.spg); {text} in OMNIC"),
    (0, b"PEPE", "a PerkinElmer file (.sp); {text} there"),
    (0, b"MATLAB 5.0 MAT-file", "a MATLAB file; write its spectra as CSV"),
    (0, b"\x93NUMPY", "a NumPy array; write it as CSV, the axis in the first column"),
    (0, b"\x80\x04\x95", "a Python pickle, which is never opened; write its spectra as CSV"),
    (0, b"SQLite format 3\x00", "an SQLite database; write its spectra as CSV"),
    (0, b"PAR1", "a Parquet table; write it as CSV"),
    (0, b"%PDF-", "a PDF; the numbers are needed, not their picture"),
    (0, b"\x89PNG\r\n\x1a\n", "a PNG picture; the numbers are needed"),
    (0, b"\xff\xd8\xff", "a JPEG picture; the numbers are needed"),
    (0, b"GIF8", "a GIF picture; the numbers are needed"),
    (0, b"II*\x00", "a TIFF picture; the numbers are needed"),
    (0, b"MM\x00*", "a TIFF picture; the numbers are needed"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive; unpack it"),
    (0, b"Rar!\x1a\x07", "a RAR archive; unpack it"),
    (0, b"BZh", "a bzip2 archive; unpack it"),
    (0, b"\xfd7zXZ\x00", "an xz archive; unpack it"),
    (0, b"(\xb5/\xfd", "a zstd archive; unpack it"),
    (0, b"\x7fELF", "a program"),
    (0, b"MZ\x90\x00", "a Windows program"),
    (257, b"ustar", "a tar archive; unpack it"),
    (4098, b"\x55\x55", "a Princeton WinSpec file (.spe 2.x); {text} there"),
)
"""Position of a signature, its bytes, and what the file seems to be."""

SPE_HEADER_BYTES, SPE_FOOTER = 4100, b"<SpeFormat"
BITMAP_MARK, BITMAP_SIZE_AT = b"BM", 2

WORDS: tuple[tuple[str, str], ...] = (
    ("<!doctype html", "a web page; save the file that it links to"),
    ("<html", "a web page; save the file that it links to"),
    ("<?xml", "XML of a kind that is not known here (known are LabSpec and TriVista)"),
    ("{\\rtf", "a formatted document; save it as plain text"),
    ("data_", "CIF without a Raman spectrum"),
    ("%!ps", "a PostScript picture; the numbers are needed"),
    ("version https://git-lfs", "a pointer of Git LFS, not the file; run: git lfs pull"),
    ("import ", "a program"),
    ("#!", "a program"),
)


def known_other(data: bytes) -> str | None:
    """Return what a binary file seems to be, or None if it is not recognised."""
    for at, signature, what in SIGNATURES:
        if data[at : at + len(signature)] == signature:
            return f"it seems to be {what.format(text=TEXT)}"
    size = int.from_bytes(data[BITMAP_SIZE_AT : BITMAP_SIZE_AT + 4], "little")
    if data.startswith(BITMAP_MARK) and size == len(data):
        return "it seems to be a BMP picture; the numbers are needed"
    if len(data) > SPE_HEADER_BYTES and SPE_FOOTER in data[-1_000_000:]:
        return f"it seems to be a Princeton LightField file (.spe 3.x); {TEXT} there"
    return None


def seems_text(text: str) -> str:
    """Return what a text without a table seems to be."""
    head = text[:4096].lstrip().lower()
    for word, what in WORDS:
        if head.startswith(word):
            return f"it seems to be {what}"
    lines = [line for line in text[:4096].splitlines() if line.strip()]
    shown = lines[0].strip()[:60] if lines else ""
    return f"it begins with {shown!r}, and no line holds two numbers, an axis and an intensity"
