"""The HTTP pages of a service: agent card, health and metrics."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from labharness.faces.service.card import CARD_PATH
from labharness.faces.service.counts import CONTENT_TYPE, Counts, exposed
from labharness.faces.service.local_http import Page, json_page
from labharness.work.task.record import Tasks
from labharness.work.task.states import TERMINAL

HEALTHY: Final = ("idle", "running")
"""The states of a line in which tasks are carried out."""


def pages_of(
    card: Mapping[str, Any],
    counts: Counts,
    tasks: Callable[[], Tasks],
    line: Callable[[], str],
) -> dict[str, Callable[[], Awaitable[Page]]]:
    """Return the pages by their paths.

    Args:
        card: The agent card.
        counts: Of the service.
        tasks: Returns the tasks as they are.
        line: Returns the state of the line; it may block for some seconds.
    """

    async def cards() -> Page:
        return json_page(card)

    async def health() -> Page:
        state = await asyncio.to_thread(line)
        well = counts.connected and state in HEALTHY
        body = {"healthy": well, "broker_connected": counts.connected, "line": state}
        return json_page(body, HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE)

    async def metrics() -> Page:
        state = await asyncio.to_thread(line)
        statuses = Counter(each.status for each in tasks().by_id.values())
        open_now = sum(count for status, count in statuses.items() if status not in TERMINAL)
        text = exposed(counts, statuses, open_now, state)
        return Page(text.encode(), CONTENT_TYPE)

    return {CARD_PATH: cards, "/healthz": health, "/metrics": metrics}
