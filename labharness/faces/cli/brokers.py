"""The broker that a command names: by an address, a file with one, or the environment."""

import argparse
import os
import ssl
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

from labharness.core.files.named import open_named
from labharness.faces.broker.connection import Broker
from labharness.faces.cli.show import BadUse, looking
from labharness.instruments.link.identity import is_here

BROKER: Final = "LABHARNESS_BROKER"
"""The variable with the broker's address; a command line is seen by every account of a machine."""

SCHEMES: Final = ("amqp://", "amqps://")

SECRETS_BYTES_MAX: Final = 1_048_576


def broker_of(chosen: argparse.Namespace) -> Broker:
    """Return the broker that a command names.

    Raises:
        BadUse: None is named, the address is none of AMQP or shows a password, it would send
            password and messages in clear to another machine, or a certificate cannot be used.
    """
    url = chosen.broker or os.environ.get(BROKER, "")
    if url and "://" not in url:  # a file holds it
        url = own_text(Path(url)).strip()
    if url == chosen.broker and ":" in url.partition("://")[2].rpartition("@")[0]:
        raise BadUse("call.password_seen", name=BROKER)
    host = parts_of(url).hostname
    if not url.startswith(SCHEMES) or not host:
        raise BadUse("hcp.bad_broker", url=url.rpartition("@")[2] or "-", name=BROKER)
    if Broker(url).secured:
        return Broker(url, tls_of(chosen.ca, chosen.cert, getattr(chosen, "cert_key", None)))
    if chosen.ca or chosen.cert:
        raise BadUse("hcp.no_tls")
    if not stays_here(host):
        raise BadUse("hcp.in_clear", host=host)
    return Broker(url)


def tls_of(ca: str | None, cert: str | None = None, cert_key: str | None = None) -> ssl.SSLContext:
    """Return the TLS settings of a connection to a broker.

    Raises:
        BadUse: The certificates cannot be used.
    """
    try:
        tls = ssl.create_default_context(cafile=ca)
        if cert:
            tls.load_cert_chain(cert, cert_key)
    except OSError as why:  # ssl.SSLError is one
        raise BadUse("pair", what=cert or ca, why=str(why)) from None
    return tls


def own_text(path: Path) -> str:
    """Return the content of a file with secrets.

    Raises:
        BadUse: It cannot be read, or others may read it.
    """
    with looking(path, BadUse), open_named(path) as file:
        if os.name == "posix" and stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
            raise BadUse("broker.open_file", path=str(path))
        return file.read(SECRETS_BYTES_MAX).decode("utf-8", "replace")


def parts_of(url: str) -> SplitResult:
    """Return the parts of an address; empty ones where it names no host, or a port that is none."""
    with suppress(ValueError):
        parts = urlsplit(url)
        if parts.hostname and parts.port != 0:
            return parts
    return urlsplit("")


def stays_here(host: str) -> bool:
    """Return whether what is sent to a host does not leave this machine."""
    return host == "localhost" or is_here(host)
