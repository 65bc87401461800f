"""Event loops with their own time: virtual (as fast as the work goes) or paced (N times real).

Rules of the virtual loop, each held by its tests:

* The clock is an integer of microseconds. A finer grid spins: at 1.7e9 s a float cannot add 1 ns.
* Timers that fall due together fire in the order they were made; asyncio's heap breaks ties.
* Waiting with no timer and nothing to run is a deadlock and raises ``Deadlock``.
* Executor work runs inline: a thread would finish at a moment that no seed decides.
* Tasks hash by their creation number, so that sets of tasks are walked in order.
"""

import asyncio
import gc
import heapq
import math
import selectors
import sys
from asyncio import Handle, TimerHandle
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Executor
from contextvars import Context, copy_context
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from labharness.core.clock.process import steady_s
from labharness.core.errors import LabError

T = TypeVar("T")

TICKS_PER_S = 1_000_000
_FAILURES: "WeakKeyDictionary[asyncio.AbstractEventLoop, list[BaseException]]" = WeakKeyDictionary()

CANCELLED_MAX = 100  # timers cancelled and still in the queue, as in asyncio, or half of them all
RECENT_S = 10.0  # for which a paced loop that fell behind is said to have done so
# a busy thread gives up the interpreter after this time; Python's default is 5 ms
SWITCH_S = 0.00025
# Objects made, less those that ended, until the collector looks at the young ones; Python's default
# is 700. A loop makes few cycles, and each look takes its time from all that waits.
YOUNG_MAX = 20_000


class Deadlock(LabError, RuntimeError, code="deadlock"):
    """Every task waits and no timer is set: the virtual loop would idle for ever."""


class _OrderedTask(asyncio.Task[Any]):
    """A task whose hash is its creation number, so that sets of tasks keep that order."""

    _created = 0

    def __init__(self, coro: Coroutine[Any, Any, Any], **options: Any) -> None:  # noqa: ANN401 - asyncio's own signature
        loop = options["loop"]
        loop.tasks_created += 1
        self._number: int = loop.tasks_created
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class _OrderedTimer(TimerHandle):
    """A timer that breaks ties by its creation number.

    Several are made each lab second, so speed counts: outside debug mode it fills asyncio's own
    fields itself, which takes a third of the time.
    """

    __slots__ = ("order",)
    order: int
    _callback: Callable[..., object]
    _args: Sequence[object]
    _context: Context
    _loop: asyncio.AbstractEventLoop
    _repr: str | None
    _source_traceback: object
    # Private names of asyncio, like those that the loops declare below. Tests pin them for each
    # Python.
    _when: float
    _cancelled: bool
    _scheduled: bool
    _run: Callable[[], None]

    def __init__(
        self,
        when: float,
        callback: Callable[..., object],
        args: Sequence[object],
        loop: "_OrderedLoop",
        context: Context | None,
        order: int,
    ) -> None:
        self.order = order
        if loop._debug:
            super().__init__(when, callback, args, loop, context)
            return
        self._context = copy_context() if context is None else context
        self._loop = loop
        self._callback = callback
        self._args = args
        self._cancelled = False
        self._repr = None
        self._source_traceback = None
        self._when = when
        self._scheduled = False

    def __lt__(self, other: "_OrderedTimer") -> bool:  # type: ignore[override]  # one loop, one kind
        if self._when == other._when:
            return self.order < other.order
        return self._when < other._when


_Post = tuple[Callable[[Any], None], Any]  # what `post_at` calls


def _is_cancelled(due: _OrderedTimer | _Post) -> bool:
    return not isinstance(due, tuple) and due._cancelled


class _OrderedLoop(asyncio.SelectorEventLoop):
    """The part that both loops share: FIFO timers and ordered tasks."""

    _debug: bool
    _scheduled: list[_OrderedTimer]
    _ready: deque[Handle]
    _stopping: bool
    _run_once: Callable[[], None]
    _selector: selectors.BaseSelector
    _timer_cancelled_count: int

    def __init__(self, selector: selectors.BaseSelector) -> None:
        super().__init__(selector)
        self.tasks_created = 0
        self._timers_created = 0
        self.set_task_factory(self._make_task)  # type: ignore[arg-type]  # typeshed wants any awaitable

    def _make_task(
        self,
        loop: asyncio.AbstractEventLoop,
        coro: Coroutine[Any, Any, Any],
        **options: Any,  # noqa: ANN401 - asyncio's own signature
    ) -> "asyncio.Future[Any]":
        return _OrderedTask(coro, loop=loop, **options)

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: object,
        context: Context | None = None,
    ) -> TimerHandle:
        """Schedule ``callback`` on the microsecond grid, first made first fired."""
        self._timers_created += 1
        when = round(when * 1e6) / 1e6
        timer = _OrderedTimer(when, callback, args, self, context, self._timers_created)
        heapq.heappush(self._scheduled, timer)
        timer._scheduled = True
        return timer


class VirtualLoop(_OrderedLoop):
    """A loop whose time passes only while nothing can run.

    It looks at no socket and no pipe: a run that is repeatable has none.
    """

    def __init__(self) -> None:
        self.ticks = 0
        self._queue: list[tuple[int, int, _OrderedTimer | _Post]] = []
        super().__init__(selectors.DefaultSelector())

    def time(self) -> float:
        """Return the seconds of lab time since the loop was made."""
        return self.ticks / TICKS_PER_S

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: object,
        context: Context | None = None,
    ) -> TimerHandle:
        """Schedule ``callback`` on the microsecond grid, first made first fired."""
        self._timers_created = order = self._timers_created + 1
        tick = round(when * 1e6)
        timer = _OrderedTimer(tick / 1e6, callback, args, self, context, order)
        heapq.heappush(self._queue, (tick, order, timer))
        timer._scheduled = True
        return timer

    def post_at(self, when: float, callback: Callable[[T], None], data: T) -> None:
        """Call ``callback(data)`` as ``call_at`` would, without a handle to cancel it by.

        It runs in the loop's own context. Each reply of a simulated instrument comes so, in half
        the time of a timer.
        """
        self._timers_created = order = self._timers_created + 1
        heapq.heappush(self._queue, (round(when * 1e6), order, (callback, data)))

    def _run_once(self) -> None:
        """Take one turn: as asyncio's own, but the clock moves instead of waiting.

        Timers stand in the queue behind their tick and number, which are compared without a call.
        Mostly a single timer is due and nothing else is to run: then it runs at once.
        """
        queue, ready = self._queue, self._ready
        while queue and not (ready or self._stopping):
            tick, _, due = heapq.heappop(queue)
            if not isinstance(due, tuple) and due._cancelled:
                self._timer_cancelled_count -= 1
                continue
            if tick > self.ticks:
                self.ticks = tick
            if queue and queue[0][0] <= self.ticks:
                ready.append(self._handle(due))
                break
            try:
                if isinstance(due, tuple):
                    due[0](due[1])
                else:  # as its own `_run`, without a call
                    due._scheduled = False
                    due._context.run(due._callback, *due._args)
            except (SystemExit, KeyboardInterrupt):
                raise
            except BaseException as why:  # noqa: BLE001 - told to the loop, as asyncio does
                self.call_exception_handler({"message": f"exception in {due}", "exception": why})
        if self._timer_cancelled_count > max(CANCELLED_MAX, len(queue) // 2):
            queue[:] = [each for each in queue if not _is_cancelled(each[2])]
            heapq.heapify(queue)
            self._timer_cancelled_count = 0
        if not (ready or self._stopping):
            raise Deadlock(f"at {self.time():.6f} s everything waits and nothing is scheduled")
        while queue and queue[0][0] <= self.ticks:
            ready.append(self._handle(heapq.heappop(queue)[2]))
        for _ in range(len(ready)):  # what these make ready runs in the next turn
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _handle(self, due: "_OrderedTimer | _Post") -> Handle:
        if isinstance(due, tuple):
            return Handle(due[0], due[1:], self)
        due._scheduled = False
        return due

    def close(self) -> None:
        """Close the loop; what its timers hold is free."""
        super().close()
        self._queue.clear()

    def run_in_executor(
        self, executor: Executor | None, func: Callable[..., T], *args: object
    ) -> "asyncio.Future[T]":
        """Run ``func`` at once and inline; the module's rules say why."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as why:  # noqa: BLE001 - passed on to the task that awaits the future
            future.set_exception(why)
        return future


class _InLabTime(selectors.BaseSelector):
    """A selector whose timeouts are lab seconds."""

    speed = 1.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait ``timeout`` lab seconds at most."""
        if timeout is not None and timeout > 0:
            timeout /= self.speed
        return super().select(timeout)


class _PacedSelector(_InLabTime, selectors.DefaultSelector):
    """For any number of descriptors; epoll rounds up to milliseconds."""


class _FineSelector(_InLabTime, selectors.SelectSelector):
    """To the microsecond, for few descriptors."""


class PacedLoop(_OrderedLoop):
    """A loop whose time runs ``speed`` times as fast as the wall clock; 1 is real time.

    It shortens the interpreter's switch interval of the process and leaves it so: a trip must not
    wait 5 ms for a busy thread (an uploaded plan, a fit).

    Args:
        speed: Lab seconds per real second.
        fine: Keep timers to tens of microseconds, for a process that times bytes and has few
            descriptors.

    Attributes:
        behind_s: Most lab seconds by which a timer came late in the last `RECENT_S` real seconds.

    Raises:
        ValueError: The speed is not a positive number.
    """

    _closed = True  # until __init__ is done: asyncio's destructor asks also a loop that was refused

    def __init__(self, speed: float = 1.0, *, fine: bool = False) -> None:
        if not (math.isfinite(speed) and speed > 0):
            raise ValueError(f"speed {speed} is not a positive number")
        selector = _FineSelector() if fine else _PacedSelector()
        selector.speed = speed
        self.speed = speed
        self._start_s = steady_s()
        self.behind_s, self._behind_at_s = 0.0, 0.0
        sys.setswitchinterval(min(SWITCH_S, sys.getswitchinterval()))
        super().__init__(selector)

    def time(self) -> float:
        """Return the seconds of lab time since the loop was made."""
        return (steady_s() - self._start_s) * self.speed

    def _run_once(self) -> None:
        """Take one turn, and note by how much the timer that is next is late."""
        now_s = self.time()
        late_s = now_s - self._scheduled[0]._when if self._scheduled else 0.0
        if late_s > self.behind_s or now_s - self._behind_at_s > RECENT_S * self.speed:
            self.behind_s, self._behind_at_s = late_s, now_s
        super()._run_once()


def poster(
    loop: asyncio.AbstractEventLoop,
) -> Callable[[float, Callable[[T], None], T], object]:
    """Return what calls a function with one argument at a loop's time, and is not cancelled."""
    return loop.post_at if isinstance(loop, VirtualLoop) else loop.call_at


def failure_of(loop: asyncio.AbstractEventLoop) -> BaseException | None:
    """Return the first exception that a callback of this loop raised, or ``None``.

    The caller takes over the responsibility: the result of ``main`` counts from then on.
    """
    broken = _FAILURES.get(loop, [])
    if not broken:
        return None
    first, broken[1:] = broken[0], [_Acknowledged()]
    return first


class _Acknowledged(Exception):
    """Marks a list of failures as known to ``main``."""


def run(main: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> T:
    """Run ``main`` to its end on ``loop``, cancel the remaining tasks, and close the loop.

    An exception in a callback (a frozen plant, a broken decoder) cancels ``main`` instead of being
    printed and forgotten, and fails the run. Only a ``main`` that catches the cancellation and asks
    ``failure_of(loop)`` may still make its line safe and return an answer of its own.
    """
    asyncio.set_event_loop(loop)
    task = begin(main, loop)
    broken = _FAILURES[loop]
    threshold = gc.get_threshold()
    gc.set_threshold(max(YOUNG_MAX, threshold[0]), *threshold[1:])
    try:
        try:
            result = loop.run_until_complete(task)
        except asyncio.CancelledError:
            if broken:
                raise broken[0] from None
            raise
        if broken and not any(isinstance(why, _Acknowledged) for why in broken):
            raise broken[0]
        return result
    finally:
        gc.set_threshold(*threshold)
        finish(loop)


def begin(main: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop) -> "asyncio.Task[T]":
    """Make ``main`` the task of its loop that is cancelled when a callback of the loop fails."""
    broken: list[BaseException] = []
    _FAILURES[loop] = broken

    def on_exception(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        why = context.get("exception") or RuntimeError(str(context.get("message")))
        broken.append(why)
        if len(broken) == 1 and not task.done():
            task.cancel()

    loop.set_exception_handler(on_exception)
    task = loop.create_task(main)
    return task


def finish(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel the tasks left on a stopped loop, wait for their end, and close the loop."""
    left = sorted(asyncio.all_tasks(loop), key=hash)
    for each in left:
        each.cancel()
    if left:
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    asyncio.set_event_loop(None)
    loop.close()
