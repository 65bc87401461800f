"""Documents for tests, made as bytes: papers, and files that would harm a reader."""

import zlib

PAPER = """# Growth of monolayer MoS2

## Abstract

Monolayer MoS2 was grown on SiO2/Si by chemical vapor deposition at 700-750 °C for 10 min under
50 sccm Ar.
The catalyst achieves a 95% conversion rate under ambient conditions.

## 1 Introduction

Other layers may reach a mobility of 200 cm2 V-1 s-1, as reported by earlier work [3].

## 3 Results

### 3.2 Raman

The film reaches a coverage of 85 % after 10 min, compared to 40 % after 5 min.

## References

[3] A. Author et al., a mobility of 200 cm2 V-1 s-1 is reached.
"""

PAGE = """<html><head><title>t</title></head><body><nav><a href="/">home 5 nm</a></nav>
<h1>Growth of MoS2</h1><p>We describe how a layer is grown and then measured in our laboratory.</p>
<h2>3 Results</h2><h3>3.2 Raman</h3><p>The film reaches a coverage of 85 % after 10 min, compared
to 40 % after 5 min. The separation of the peaks is 18.6 cm<sup>-1</sup> in this work.</p>
<footer>Copyright 2020</footer></body></html>"""


def pdf(lines: list[tuple[str, int]], *, streams: list[bytes] | None = None) -> bytes:
    """Return a PDF of one page: lines of text, each of a size, or streams as its content."""
    drawn = []
    y = 780
    for text, size in lines:
        y -= 2 * size
        said = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
        drawn.append(f"BT /F1 {size} Tf 50 {y} Td ({said}) Tj ET")
    content = [zlib.compress("\n".join(drawn).encode("latin-1"))] if streams is None else streams
    parts = " ".join(f"{6 + at} 0 R" for at in range(len(content)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842]"
        + f" /Resources << /Font << /F1 4 0 R >> >> /Contents [{parts}] >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< >>",
    ]
    for each in content:
        head = f"<< /Length {len(each)} /Filter /FlateDecode >>\nstream\n".encode()
        objects.append(head + each + b"\nendstream")
    out = b"%PDF-1.4\n"
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    size = len(objects) + 1
    return (
        out
        + (
            f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\n"
            f"startxref\n{len(out)}\n%%EOF\n"
        ).encode()
    )


def bomb(megabytes: int = 2_000) -> bytes:
    """Return a PDF whose content grows to so many megabytes when it is unpacked."""
    part = b" " * 1_000_000
    packer = zlib.compressobj(9)
    head = packer.compress(part) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(part) + packer.flush(zlib.Z_FULL_FLUSH)
    end = zlib.compressobj(9, zlib.DEFLATED, -15).flush()
    check = 1
    for _ in range(megabytes):
        check = zlib.adler32(part, check)
    packed = head + block * (megabytes - 1) + end + check.to_bytes(4, "big")
    return pdf([], streams=[packed])


def nested(depth: int) -> str:
    """Return a page whose elements nest so deep."""
    return "<html><body>" + "<div>" * depth + "5 nm" + "</div>" * depth + "</body></html>"
