"""A test that is a coroutine, played on a loop."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec

P = ParamSpec("P")
Main = Coroutine[Any, Any, Any]


def played(run: Callable[[Main], object]) -> Callable[[Callable[P, Main]], Callable[P, None]]:
    """Return what has a coroutine run as a test, whose arguments pytest sees."""

    def made(test: Callable[P, Main]) -> Callable[P, None]:
        @wraps(test)
        def whole(*args: P.args, **kwargs: P.kwargs) -> None:
            run(test(*args, **kwargs))

        return whole

    return made
