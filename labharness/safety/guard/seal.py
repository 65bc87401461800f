"""The seal of a permit that crosses a socket: HMAC-SHA-256 over canonical bytes.

The key is drawn by the guard for one connection and handed over on it. Sealed are the permit, and
with it the request it is for: who could change the reply rule or the time-out of a command could
hold its port while a procedure waits.
"""

import hmac
import json
import struct

from labharness.core.vocabulary import Request
from labharness.safety.guard.core import Permit
from labharness.safety.guard.written import write_request

__all__ = ["KEY_BYTES", "fits", "seal"]

KEY_BYTES = 32
_HEAD = struct.Struct(">QQQII")  # number, epoch, expiry (us), lengths of port and frame


def seal(key: bytes, permit: Permit, request: Request) -> bytes:
    """Compute the seal of a permit for a request."""
    port = permit.port.encode()
    head = _HEAD.pack(
        permit.number,
        permit.epoch,
        round(permit.expires_s * 1e6),
        len(port),
        len(permit.frame),
    )
    rest = json.dumps(write_request(request), sort_keys=True).encode()
    return hmac.digest(key, head + port + permit.frame + rest, "sha256")


def fits(key: bytes, permit: Permit, request: Request, given: bytes) -> bool:
    """Return whether a seal is that of this permit for this request."""
    return hmac.compare_digest(seal(key, permit, request), given)
