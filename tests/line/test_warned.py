"""What only warns is shown and journaled, for each channel that it is true of."""

import asyncio
from pathlib import Path

import pytest

from alarmed import watching
from labharness.core.vocabulary.texts import Text
from rig import approved_copy

WARM = "temperature above the safety envelope"


@pytest.mark.promise(21)
async def test_each_channel_above_a_limit_that_only_warns_is_shown_and_journaled(
    tmp_path: Path,
) -> None:
    def edit(text: str) -> str:
        return text.replace(
            'max = 1000\nunit = "celsius"\nhard_limit = true',
            'max = 20\nunit = "celsius"\nhard_limit = false',
        )

    async with watching(approved_copy(tmp_path, edit=edit), tmp_path / "run") as watched:
        await asyncio.sleep(5)  # the room is at 25 degC: furnace and sulfur heater are above
    for said in (
        watched.lab.line.events.warnings,
        [w["detail"] for w in watched.journaled("warning")],
    ):
        texts = [each for each in said if isinstance(each, Text)]
        assert texts == list(said)
        about = [str(each.params["channel"]) for each in texts if each.params.get("row") == WARM]
        assert sorted(about) == ["furnace.temperature", "sulfur.temperature"], "each once"
