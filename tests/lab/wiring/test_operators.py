"""What a person at a terminal is asked: the words of a caller draw no terminal."""

import asyncio

from labharness.lab.wiring.operators import TerminalOperator


def test_the_words_of_a_caller_are_shown_on_their_own_line_without_control_characters() -> None:
    asked: list[str] = []

    def ask(prompt: str) -> str:
        asked.append(prompt)
        return "Ada"

    about = {"sample": "a\r\x1b[2Kb"}
    by = asyncio.run(TerminalOperator(ask).confirm("load", "\x1b]0;x\x07Load\nDone", about))
    first, second, last = asked[0].split("\n")
    assert (by, first, second) == ("Ada", "�]0;x�Load�Done", "  sample = a��[2Kb")
    assert last == "  When it is done, type your name: "
