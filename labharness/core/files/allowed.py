"""A file that an address names, if it lies below a folder from which files may be read."""

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit


def path_of(uri: str) -> Path | None:
    """Return the path of a ``file:`` address of this machine, without any step upwards."""
    parts = urlsplit(uri)
    path = unquote(parts.path)
    if parts.netloc not in ("", "localhost") or "\x00" in path or not path.startswith("/"):
        return None
    return Path(os.path.normpath(path))


def allowed_file(uri: str, folders: Sequence[Path]) -> Path | None:
    """Return the file that an address leads to, wherever its links lead.

    Args:
        uri: A ``file:`` address.
        folders: Absolute folders below which it must lie, links resolved.

    Returns:
        ``None`` for a file elsewhere, whether it is there or not.

    Raises:
        FileNotFoundError: It would be below one of them, and is not there.
    """
    path = path_of(uri)
    if path is None:
        return None
    try:
        found = path.resolve(strict=True)
    except (OSError, RuntimeError):
        if any(path.is_relative_to(each) for each in folders):
            raise FileNotFoundError(str(path)) from None
        return None
    return found if any(found.is_relative_to(each) for each in folders) else None
