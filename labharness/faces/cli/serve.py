"""``labharness serve``: the house of a lab, reachable for callers over a message broker."""

import argparse
import asyncio
import contextlib
import socket
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Final

from labharness.core.clock import pause
from labharness.core.vocabulary.texts import Text
from labharness.faces.broker.connection import Broker
from labharness.faces.cli.brokers import broker_of, parts_of
from labharness.faces.cli.show import BadUse, chosen_lab, complain, looking
from labharness.faces.service.amqp import AmqpFace
from labharness.faces.service.card import agent_card
from labharness.faces.service.counts import Counts
from labharness.faces.service.stdio import serve_stdio
from labharness.lab import LabPlan
from labharness.lab.config.lab_facts import lab_facts_of
from labharness.lab.config.lease import Leased
from labharness.lab.house.access import Face, HouseAccess
from labharness.lab.house.house_process import HouseProcess
from labharness.lab.house.owner_client import line_state
from labharness.lab.house.start import NotUp, bring_up_owner

BROKERS: Final = ("broker", "ca", "cert", "http")
"""Options that are for a broker."""

STAND_BY_S: Final = 1.0
"""Time (s) between two tries to take over from another house of this lab."""

OWNER_LOOK_S: Final = 2.0
OWNER_LOOK_S_MAX: Final = 60.0
"""Longest time (s) between two looks at a line owner that does not come up."""


def serve(chosen: argparse.Namespace) -> None:
    """Serve until a stop request."""
    plan = chosen_lab(chosen.lab)
    broker = None if _alone(chosen) else broker_of(chosen)
    collector = None
    if chosen.traces is not None:
        if parts_of(chosen.traces).scheme not in ("http", "https"):
            raise BadUse("pair", what="--traces", why=Text("traces.url", url=chosen.traces))
        from labharness.faces.service.traces import collector_at, traced

        collector = collector_at(chosen.traces)
    with looking(plan.state_dir), contextlib.ExitStack() as stack:
        plan.must_hold()
        listening = listening_at("--http", chosen.http, stack)
        sockets = listening_at("--websocket", chosen.websocket, stack)
        if listening is not None:
            complain(Text("serve.pages", port=listening.getsockname()[1]))

        async def served(house: HouseAccess) -> None:
            counts = Counts()
            face: Face = partial(serve_stdio, complain)
            if broker is not None:
                face = AmqpFace(broker, complain, counts)
            elif sockets is not None:
                from labharness.faces.service.sockets import serve_websockets

                face = partial(serve_websockets, sockets, complain)
            async with contextlib.AsyncExitStack() as stack:
                if collector is not None:
                    traces = traced(house, collector, counts, complain)
                    house = await stack.enter_async_context(traces)
                if listening is not None and broker is not None:
                    pages = _pages(plan, broker, house, counts, listening)
                    await stack.enter_async_context(pages)
                keeping = asyncio.ensure_future(_keep_owner(plan, chosen.speed))
                try:
                    await face(house)
                finally:
                    keeping.cancel()

        stands_by = False
        while True:
            try:
                bring_up_owner(plan, chosen.speed)
                HouseProcess(plan.path.resolve(), Path(chosen.runs), served).run()
                return
            except Leased as why:
                if not stands_by:
                    complain(Text("hcp.stands_by", why=str(why)))
                stands_by = True
                pause(STAND_BY_S)


def _alone(chosen: argparse.Namespace) -> bool:
    """Return whether callers are served without a broker.

    Raises:
        BadUse: An option beside it is for another way.
    """
    ways = {"--stdio": chosen.stdio, "--websocket": chosen.websocket is not None}
    way = next((name for name, is_on in ways.items() if is_on), "")
    given = [f"--{each}" for each in BROKERS if getattr(chosen, each) is not None]
    if all(ways.values()):
        given.insert(0, "--websocket")
    if way and given:
        raise BadUse("serve.alone", way=way, option=given[0])
    return bool(way)


def listening_at(
    option: str, port: int | None, stack: contextlib.ExitStack
) -> socket.socket | None:
    """Take a port of this machine, before anything begins.

    Raises:
        BadUse: It cannot be had.
    """
    if port is None:
        return None
    from labharness.faces.service.application import local_socket

    try:
        return stack.enter_context(local_socket(port))
    except (OSError, OverflowError) as why:
        raise BadUse("pair", what=f"{option} {port}", why=str(why)) from None


def _pages(
    plan: LabPlan, broker: Broker, house: HouseAccess, counts: Counts, listening: socket.socket
) -> contextlib.AbstractAsyncContextManager[None]:
    """Return what serves the pages of a lab as long as its house is up."""
    from labharness.faces.service.application import application, serving
    from labharness.faces.service.artifact_pages import ArtifactPages
    from labharness.faces.service.pages import pages_of

    facts = lab_facts_of(plan)
    card = agent_card(
        lab_id=house.lab_id,
        title=plan.file.lab.title,
        version=version("labharness"),
        address=f"{broker.url.partition('://')[0]}://{broker.place}",
        declarations=[each.declaration for each in facts.capabilities.values()],
        safety_envelope=facts.safety_envelope,
    )
    pages = pages_of(card, counts, house.tasks, partial(line_state, plan))
    artifacts = ArtifactPages(broker.vouches, house.tasks, house.runs).route
    return serving(application([*pages, artifacts]), listening)


async def _keep_owner(plan: LabPlan, speed: float | None) -> None:
    """Start the line owner again whenever it has died; a line that it left is latched."""
    wait_s = OWNER_LOOK_S
    while True:
        await asyncio.sleep(wait_s)
        try:
            await asyncio.to_thread(bring_up_owner, plan, speed)
            wait_s = OWNER_LOOK_S
        except (NotUp, OSError) as why:
            complain(str(why))
            wait_s = min(2 * wait_s, OWNER_LOOK_S_MAX)
