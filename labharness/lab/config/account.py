"""The account of the operating system under which this process runs."""

import getpass
import os


def account() -> str:
    """Return its name, or ``account`` and its number where it has none, as in a container."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"account {os.getuid()}" if hasattr(os, "getuid") else "unknown account"
