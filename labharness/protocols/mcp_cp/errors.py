"""Errors of MCP-CP (chapter 7): the class of each code, and what may be said of an error."""

import re
from collections.abc import Mapping
from typing import Final, Literal

from labharness.core.vocabulary.texts import CodedError, Text
from labharness.protocols.mcp_cp.messages import ErrorDetails, ErrorResponse, ErrorSource

ErrorClass = Literal["PARSING", "VALIDATION", "EXECUTION", "TIMEOUT", "DEPENDENCY", "SYSTEM"]

ERROR_CODES: Final[Mapping[str, tuple[ErrorClass, bool]]] = {
    "PARSING_ERROR": ("PARSING", True),
    "UNSUPPORTED_VERSION": ("PARSING", False),
    "VALIDATION_ERROR": ("VALIDATION", True),
    "AUTH_FAILED": ("VALIDATION", True),
    "FORBIDDEN": ("VALIDATION", False),
    "RATE_LIMITED": ("VALIDATION", True),
    "EXECUTION_ERROR": ("EXECUTION", False),
    "TIMEOUT": ("TIMEOUT", True),
    "DEPENDENCY_ERROR": ("DEPENDENCY", False),
    "SYSTEM_ERROR": ("SYSTEM", False),
}
"""The class of each code that we send, and whether another try may help."""

# Paths of files of either system, but not what follows `https:/`; processes; accounts. Chinese has
# no blank before them, and writes a choice of words with strokes.
_PART: Final = r"(?:[/\\][\w.@ -]*[\w.@-])"
_INSIDE: Final = re.compile(
    r"(?<![A-Z0-9_])file:/[^\s,;'\"]*[^\s,;:.'\"]"
    r"|(?<![^\W\u3000-\u9fff])(?<![/.])(?:"
    rf"(?:~|[A-Z]:){_PART}+|(?:(?=.[!-~])|(?<![\u3000-\u9fff])){_PART}{{2,}}|/[\w-]+\.[A-Z]\w*)"
    r"|(?:(?<![A-Z0-9_])(?:pid|process(?: id)?)|\u8fdb\u7a0b\u53f7?)[ =:#\uff1a]*[0-9]+"
    r"|(?<![A-Z0-9_.+-])[A-Z_][A-Z0-9_.+-]*@[A-Z0-9][A-Z0-9.-]*",
    re.IGNORECASE,
)


class NotMcpCp(CodedError, ValueError, code="not_mcp_cp"):
    """Bytes that are not a message of MCP-CP, or an update that a context cannot take.

    Attributes:
        where: JSON path of the place.
        error_code: One of `ERROR_CODES`.
        message_id: Of the message, where that could be read.
        context_id: Likewise.
    """

    message_id: str | None = None
    context_id: str | None = None

    def __init__(self, said: str, where: str = "$", error_code: str = "VALIDATION_ERROR") -> None:
        super().__init__(said)
        self.where, self.error_code = where, error_code


def class_of(error_code: str) -> ErrorClass:
    """Return the class of a code; one that is not ours is of the system that sends it."""
    return ERROR_CODES.get(error_code, ("SYSTEM", False))[0]


def error_response(
    error_code: str,
    message: str,
    source: ErrorSource,
    details: ErrorDetails,
    suggested_action: str | None = None,
) -> ErrorResponse:
    """Return what a client is told of an error: no path, process or account (ruling 38).

    Args:
        error_code: One of `ERROR_CODES`.
        message: A sentence for users.
        source: Where it comes from.
        details: The request, the moment, and the id under which our logs have the rest.
        suggested_action: A sentence for users.
    """
    return ErrorResponse(
        error_code=error_code,
        message=without_insides(message),
        details=details,
        source=source,
        recoverable=ERROR_CODES[error_code][1],
        suggested_action=suggested_action and without_insides(suggested_action),
    )


def answer_to(fault: NotMcpCp, timestamp: str, trace_id: str) -> ErrorResponse:
    """Return the answer to a message that could not be read; of a fault of ours no more is said."""
    recoverable, ours = ERROR_CODES[fault.error_code][1], fault.error_code == "SYSTEM_ERROR"
    return error_response(
        fault.error_code,
        Text("mcp_cp.ours", trace_id=trace_id) if ours else str(fault),
        ErrorSource.SYSTEM if ours else ErrorSource.CLIENT,
        ErrorDetails(fault.message_id, timestamp, trace_id),
        Text("mcp_cp.correct", where=fault.where) if recoverable else None,
    )


def without_insides(said: str) -> str:
    """Return a sentence in which each path of a file, process id and account is `…`."""
    return _INSIDE.sub("…", said)
