"""The management interface of RabbitMQ over HTTP: reads and writes what a broker has."""

import base64
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, Final, cast
from urllib.parse import quote

from labharness.core.errors import LabError
from labharness.core.vocabulary.texts import Text
from labharness.faces.service.queue_kinds import QUORUM, Kinds, seen
from labharness.faces.service.rights import VHOST

ANSWER_S_MAX: Final = 30.0
"""Longest time (s) of one request."""

ANSWER_BYTES_MAX: Final = 64 * 1_048_576
"""Size (bytes) of the largest answer that is read."""

REASON_CHARACTERS: Final = 200

QUEUES: Final = "queues?columns=name,vhost,type,arguments"


class NoManagement(LabError, RuntimeError, code="no_management"):
    """The broker's management interface cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Management:
    """One broker, as an administrator.

    Attributes:
        url: ``http(s)://host:port``, without an account.
        account: An account with the tag ``administrator``.
        password: Its password.
        tls: For ``https``; ``None`` takes the authorities that the system trusts.
    """

    url: str
    account: str
    password: str
    tls: ssl.SSLContext | None = None

    def definitions(self) -> dict[str, Any]:
        """Return all definitions of the broker.

        Raises:
            NoManagement: It cannot be asked, or it refuses.
        """
        return cast("dict[str, Any]", self._ask("GET", "definitions"))

    def write(self, definitions: Mapping[str, Any]) -> None:
        """Add definitions, or change those of the same names.

        Raises:
            NoManagement: It cannot be asked, or it refuses.
        """
        self._ask("POST", "definitions", definitions)

    def kinds(self, version: str) -> Kinds:
        """Return what the broker says of the kinds of its queues.

        Args:
            version: Of RabbitMQ, as its definitions say.

        Raises:
            NoManagement: It cannot be asked, or it refuses.
        """
        asked = ("nodes?columns=name", "vhosts?columns=name,default_queue_type", QUEUES)
        return seen(version, *(self._ask("GET", each) for each in asked))

    def keep_virtual_host(self, *, quorum: bool) -> None:
        """Make the virtual host, or change its default queue type and nothing else of it.

        A RabbitMQ before 3.11.17 does not change it, and does not say so.

        Args:
            quorum: Its queues are quorum queues where nothing else is said.

        Raises:
            NoManagement: It cannot be asked, or it refuses.
        """
        found = self._ask("GET", "vhosts")
        (kept,) = [each for each in found if each["name"] == VHOST] or [{}]
        settings = {
            "description": kept.get("description", ""),
            "tags": ",".join(kept.get("tags", ())),
            # The first name is of the current API, the other one of those before 3.11.12.
            **(dict.fromkeys(("default_queue_type", "defaultqueuetype"), QUORUM) if quorum else {}),
        }
        self._ask("PUT", f"vhosts/{quote(VHOST, '')}", settings)

    def leave(self) -> None:
        """Take away our own rights in the virtual host, which its maker is given unasked.

        Raises:
            NoManagement: It cannot be asked, or it refuses.
        """
        self._ask("DELETE", f"permissions/{quote(VHOST, '')}/{quote(self.account, '')}")

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401 - as JSON has it
        secret = base64.b64encode(f"{self.account}:{self.password}".encode()).decode("ascii")
        request = urllib.request.Request(
            f"{self.url}/api/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode("utf-8"),
            headers={"Authorization": f"Basic {secret}", "Content-Type": "application/json"},
        )
        # No proxy: the administrator's password goes to the broker and to nobody else.
        direct = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=self.tls)
        )
        try:
            with direct.open(request, timeout=ANSWER_S_MAX) as answer:
                return json.loads(answer.read(ANSWER_BYTES_MAX) or b"null")
        except urllib.error.HTTPError as why:
            code = "broker.not_administrator" if why.code in (401, 403) else "broker.refused"
            told = why.read(REASON_CHARACTERS).decode("utf-8", "replace")
            said = Text(code, url=self.url, account=self.account, status=why.code, why=told)
            raise NoManagement(said) from None
        except (OSError, HTTPException, ValueError) as why:
            reason = getattr(why, "reason", why)
            raise NoManagement(Text("pair", what=self.url, why=str(reason))) from None
