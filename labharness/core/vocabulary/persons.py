"""Names of persons: compared as a reader sees them, refused if they could mislead a reader.

Names are taken on trust, but no name may be made to look like another one: the requester of a plan
must not approve it in Cyrillic letters, in full-width ones, or with an invisible space.
"""

import unicodedata
from typing import Final

NAME_CHARACTERS_MAX: Final = 500

_EAST_ASIAN: Final = frozenset({"CJK", "HIRAGANA", "KATAKANA", "BOPOMOFO", "HANGUL"})
"""Scripts that one word may mix, and that may stand beside Latin words (UTS #39, section 5.2)."""

_SCRIPTS: Final = _EAST_ASIAN | {
    # The scripts in everyday use (UAX #31, table 5), by the first word of their characters' names.
    *("LATIN", "ARABIC", "ARMENIAN", "BENGALI", "CYRILLIC", "DEVANAGARI", "ETHIOPIC", "GEORGIAN"),
    *("GREEK", "GUJARATI", "GURMUKHI", "HEBREW", "KANNADA", "KHMER", "LAO", "MALAYALAM"),
    *("MYANMAR", "ORIYA", "SINHALA", "TAMIL", "TELUGU", "THAANA", "THAI", "TIBETAN"),
}
_ALSO: Final = {"IDEOGRAPHIC": "CJK", "KATAKANA-HIRAGANA": "KATAKANA"}

_LATIN: Final = frozenset(
    # a to z, and sharp s, ae, oe, o with stroke, eth, thorn, d and h with stroke, dotless i, l with
    # stroke, eng, schwa, and the African b, d, d, open e, open o, gamma, i, n, v, k and y
    "abcdefghijklmnopqrstuvwxyz\xdf\xe6\u0153\xf8\xf0\xfe\u0111\u0127\u0131\u0142\u014b\u0259"
    "\u0253\u0256\u0257\u025b\u0254\u0263\u0269\u0272\u028b\u0199\u01b4"
)
"""Latin letters of personal names, without marks. Phonetic letters are left out: they look like
others."""

_PUNCTUATION: Final = frozenset(
    # ASCII punctuation; then hyphens, dashes, apostrophes, middle dots and the okina
    "-_.,'()@/&\"#*:;+\u2010\u2011\u2013\u2014\u2018\u2019\xb7\u30fb\u02bb\u02bc"
)
_UNSEEN: Final = ("FILLER", "INHERENT", "VARIATION SELECTOR", "GRAPHEME JOINER")
_MARKS: Final = range(0x300, 0x370)
"""Combining marks, which go with the letters of any script."""

_LETTERS: Final = (
    "0410A 0412B 0415E 0405S 0406I 0408J 041aK 041cM 041dH 041eO 0420P 0421C 0422T 0423Y 0425X "
    "04aeY 04c0l 051aQ 051cW 0430a 0432b 0435e 0455s 0456i 0458j 043ak 043cm 043dh 043eo 0440p "
    "0441c 0442t 0443y 0445x 04afy 04bbh 04cfl 0501d 051bq 051dw 0391A 0392B 0395E 0396Z 0397H "
    "0399I 039aK 039cM 039dN 039fO 03a1P 03a4T 03a5Y 03a7X 03b1a 03b3y 03b9i 03bak 03bdv 03bfo "
    "03c1p 03c5u 03c7x 0555O 054dU 054fS 0585o 057du 0570h 0581g 0566q 30ed\u53e3 30ab\u529b "
    "30cb\u4e8c 30a8\u5de5 30bf\u5915 30c8\u535c 30cf\u516b 30d8\u3078 30d9\u3079 30da\u307a "
    "30fc\u4e00 0030o"
)
"""Letters that look like Latin ones (UTS #39, confusables.txt), by their code point: capital and
small Cyrillic and Greek, Armenian; then kana and Chinese signs that look alike."""

_LOOKS_LIKE: Final = {int(each[:4], 16): each[4:] for each in _LETTERS.split()}
_READ_AS_L: Final = str.maketrans("1i\u0131", "lll")


def same_person(one: str, other: str) -> bool:
    """Return whether a reader would take two names for the same person's.

    Spaces, capitals, marks, punctuation, compatibility forms (NFKC) and look-alike letters make no
    difference.
    """
    one, other = (unicodedata.normalize("NFKC", each) for each in (one, other))
    return _folded(one) == _folded(other) or _look(one) == _look(other)


def bad_name(name: str) -> str:
    """Return one sentence that says why this cannot be a person's name, or ``""``."""
    if len(name) > NAME_CHARACTERS_MAX:
        return f"a name has at most {NAME_CHARACTERS_MAX} characters, and this has {len(name)}"
    text = unicodedata.normalize("NFKC", name)
    shown = ascii(name)
    for each in text:
        if not _may_stand(each):
            what = f"U+{ord(each):04X} ({unicodedata.name(each, 'a control character')})"
            return f"the name {shown} has {what}; it takes letters, digits, spaces, hyphens"
    words = [{_script(each) for each in word if each.isalpha()} for word in text.split()]
    used = set().union(*words)
    mixed = any(len(word) > 1 and not word <= _EAST_ASIAN for word in words)
    if mixed or (len(used) > 1 and not used <= _EAST_ASIAN | {"LATIN"}):
        scripts = ", ".join(sorted(each.title() for each in used))
        return f"the name {shown} mixes letters of several scripts ({scripts}): use one"
    if not used:
        return f"the name {shown} has no letter"
    return ""


def _folded(name: str) -> str:
    return _letters(name.casefold())


def _look(name: str) -> str:
    return _letters(name.translate(_LOOKS_LIKE).casefold()).translate(_READ_AS_L).replace("rn", "m")


def _letters(text: str) -> str:
    """Return the letters and digits of a text: a reader hardly sees marks and spaces."""
    parts = unicodedata.normalize("NFD", text)
    found = (str(unicodedata.decimal(each, each)) for each in parts if ord(each) not in _MARKS)
    return "".join(each for each in found if unicodedata.category(each)[0] in "LMN")


def _may_stand(each: str) -> bool:
    kind = unicodedata.category(each)
    if kind in ("Zs", "Nd") or each in _PUNCTUATION:
        return True
    name = unicodedata.name(each, "")
    if any(unseen in name for unseen in _UNSEEN):
        return False
    if ord(each) in _MARKS:
        return True
    if kind[0] not in "LM" and each != "\u3007":  # the ideographic zero is used as a number
        return False
    script = _script(each)
    if script == "LATIN":
        return unicodedata.normalize("NFKD", each.casefold())[0] in _LATIN
    return script in _SCRIPTS


def _script(each: str) -> str:
    first = unicodedata.name(each, "").partition(" ")[0]
    return _ALSO.get(first, first)
