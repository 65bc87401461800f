"""Tools that run at a user's own program: what they read stays there, and little of it travels.

Consent to one of them is consent to that tool, once. It approves no task of a lab.
"""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from threading import Lock, Thread
from typing import Final

import msgspec

from labharness.core.clock import steady_s
from labharness.core.files.named import open_named
from labharness.core.texts import LANGUAGES
from labharness.core.vocabulary.digests import digest_of
from labharness.core.vocabulary.texts import CodedError, Text, in_language
from labharness.faces.dialogue.calling import CONSENT, error_of
from labharness.faces.dialogue.tools import Body, plain
from labharness.protocols.mcp_cp.tools import ClientInfo, SupportedTool, ToolCall, ToolResult
from labharness.work.admission.schemas import input_fault

LOG: Final = logging.getLogger(__name__)

WORDS_MAX: Final = 500
"""Most characters of a model's words in one question or note."""

PEAK: Final = {"place": "position_cm1", "width": "fwhm_cm1", "height": "height_counts"}
"""The numbers of a peak that travel, and what they are to the fit."""

DEVICE: Final = "desktop"


class NotAllowed(CodedError, PermissionError, code="permission_denied"):
    """The user has not consented to a tool, or no person could be asked."""


class ToolFailed(CodedError, ValueError, code="tool_failed"):
    """The user has consented, and the tool cannot do it; the message says why."""


def shown(words: str) -> str:
    """Return a model's words in one line of bounded length that hides nothing from a person."""
    return " ".join(str(plain(words)).split())[:WORDS_MAX]


TOOLS: Final[Mapping[str, SupportedTool]] = {
    each.tool_id: each
    for each in msgspec.json.decode(
        Path(__file__).with_suffix(".json").read_bytes(), type=tuple[SupportedTool, ...]
    )
}
"""The definitions by name."""


@dataclass(eq=False)
class FrontTools:
    """The tools of one user, carried out in this process; the `Clients` of a local dialogue.

    Attributes:
        ask: Asks the user; returns the answer, or ``None`` where no person can be asked.
        tell: Shows the user a line.
    """

    ask: Callable[[str], str | None]
    tell: Callable[[str], None]

    def __post_init__(self) -> None:
        self._picked: dict[str, tuple[Path, str]] = {}
        self._asking = Lock()

    def tools(self) -> Mapping[str, SupportedTool]:
        """Return the definitions by name."""
        return TOOLS

    def run(self, call: ToolCall, within_s: float) -> Future[ToolResult]:
        """Carry out a call in a thread; without an answer in time there is no consent."""
        future, due_s = Future[ToolResult](), steady_s() + within_s
        Thread(target=self._run, args=(call, future, due_s), name="front", daemon=True).start()
        return future

    def _run(self, call: ToolCall, future: Future[ToolResult], due_s: float) -> None:
        with self._asking, suppress(InvalidStateError):  # one question at a time
            if steady_s() < due_s:
                future.set_result(self._result(call, due_s))

    def _result(self, call: ToolCall, due_s: float) -> ToolResult:
        began_s = steady_s()
        try:
            tool, (work, question) = TOOLS[call.name], WORK[call.name]
            if fault := input_fault(tool.parameters or {}, call.parameters):
                raise ToolFailed("pair", what=fault.where, why=fault.reason)
            level = tool.permission_level
            answer = self._consent(call, question, due_s) if level == CONSENT else ""
            found = work(self, answer, **call.parameters)
        except (NotAllowed, ToolFailed) as why:
            return error_of(call.call_id, why.code.upper(), str(why))
        except Exception:  # one call does not end the others
            LOG.exception("a tool of the user's program failed")
            return error_of(call.call_id, "EXECUTION_ERROR", Text("dialogue.fault"))
        return ToolResult(
            call_id=call.call_id,
            status="SUCCESS",
            result=found,
            execution_time=round(1000 * (steady_s() - began_s), 1),
            client_info=ClientInfo(DEVICE, None, version("labharness"), tool.capabilities),
        )

    def _consent(self, call: ToolCall, question: str, due_s: float) -> str:
        """Return the answer of the user.

        Raises:
            NotAllowed: There is none.
        """
        about = [self._picked.get(str(each), (str(each),))[0] for each in call.parameters.values()]
        said = " / ".join(map(str, filter(None, (*about, call.user_prompt))))
        answer = self.ask(Text(question, words=shown(said)))
        if answer is None:
            raise NotAllowed("front.nobody", name=call.name)
        if not (answer := answer.strip()) or steady_s() >= due_s:
            raise NotAllowed("front.refused", name=call.name)
        return answer

    def pick(self, answer: str, purpose: str = "") -> Body:
        """Return name, size and digest of the file that the user has named."""
        path = Path(answer).expanduser()
        data = _content(path)
        digest = digest_of(data)
        self._picked |= dict.fromkeys((path.name, digest), (path, digest))
        return {"name": path.name, "size": len(data), "digest": digest}

    def confirm(self, answer: str, question: str) -> Body:
        """Return whether the user has said yes."""
        return {"answer": _is_yes(answer)}

    def notify(self, answer: str, text: str) -> Body:
        """Show the user a text."""
        self.tell(Text("front.notify", words=shown(text)))
        return {"shown": True}

    def fit(self, answer: str, file: str, laser_nm: float | None = None) -> Body:
        """Return the peaks of the clearest spectrum in a file that was picked."""
        if not _is_yes(answer):
            raise NotAllowed("front.refused", name="local_fit")
        path, digest = self._picked.get(file, (None, ""))
        if path is None:
            raise ToolFailed("front.not_picked", file=shown(file))
        from labharness.analysis.analysed import Wanted, analysed
        from labharness.analysis.assess import FILM_ROWS
        from labharness.analysis.formats import read_spectra

        if digest_of(data := _content(path)) != digest:
            raise ToolFailed("front.changed", name=path.name)
        try:
            read = read_spectra(data)
            read = read if laser_nm is None else read.with_laser(laser_nm)
            found = analysed(path.name, read, Wanted(), rows=FILM_ROWS["unknown"])
        except ValueError:  # its sentence may quote the file
            raise ToolFailed("front.no_spectrum", name=path.name) from None
        best = found.best
        return {
            "unit": {"place": "1/cm", "width": "1/cm", "height": "counts"},
            "peaks": [
                {name: float(getattr(each, at)[best]) for name, at in PEAK.items()}
                for each in found.lines()
                if each.stands_out[best]
            ],
        }


def _is_yes(answer: str) -> bool:
    return answer.lower() in {"y", *(in_language(Text("front.yes"), each) for each in LANGUAGES)}


def _content(path: Path) -> bytes:
    from labharness.analysis.formats import BYTES_MAX

    try:
        with open_named(path) as file:
            data = file.read(BYTES_MAX + 1)
    except OSError as why:  # its own words name the path
        raise ToolFailed("front.not_read", why=why.strerror or "") from None
    if len(data) > BYTES_MAX:
        raise ToolFailed("spectra.bytes", bytes=len(data), most=BYTES_MAX)
    return data


WORK: Final[Mapping[str, tuple[Callable[..., Body], str]]] = {
    "file_picker": (FrontTools.pick, "front.file_picker"),
    "confirm": (FrontTools.confirm, "front.confirm"),
    "notify": (FrontTools.notify, ""),
    "local_fit": (FrontTools.fit, "front.local_fit"),
}
"""The work of each tool, and the code of the question for consent to it."""
