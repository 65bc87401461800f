"""The reason for which a broker cannot be talked to, in words that say what to look at."""

import ssl
from collections.abc import Iterator
from typing import Final

from labharness.core.vocabulary.texts import Text

CAUSES_MAX: Final = 8
"""Most errors behind an error that are looked at: aiormq links some in a circle."""

NOT_TLS: Final = "WRONG_VERSION_NUMBER"
"""OpenSSL's reason where the other side answers without TLS."""


def why_away(error: BaseException, *, secured: bool) -> Text:
    """Return why a connection did not come about, or has ended.

    Args:
        error: What the connection raised.
        secured: It was to be over TLS.
    """
    from aiormq import exceptions

    login = exceptions.AuthenticationError | exceptions.ProbableAuthenticationError
    causes = list(_causes(error))
    for each in causes:
        if isinstance(each, ssl.SSLCertVerificationError):
            return Text("hcp.why.untrusted", why=each.verify_message)
        if isinstance(each, ssl.SSLError) and each.reason == NOT_TLS:
            return Text("hcp.why.no_tls")
        if isinstance(each, login):
            return Text("hcp.why.login")
        if isinstance(each, exceptions.InvalidFrameError) and "Connection.Close" in str(each):
            return Text("hcp.why.virtual_host")
    if secured and any(isinstance(each, ssl.SSLError | ConnectionResetError) for each in causes):
        return Text("hcp.why.our_certificate")
    told = next((each for each in causes if isinstance(each, OSError) and each.strerror), error)
    return Text("pair", what=type(told).__name__, why=str(told))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Return an error and those behind it."""
    for _ in range(CAUSES_MAX):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__
