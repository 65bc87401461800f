"""The account of a process, also where its number has no name."""

import getpass
import os

import pytest

from labharness.lab.config.account import account


@pytest.mark.parametrize("error", [KeyError("uid not found"), OSError("no username")])
def test_a_number_without_a_name_is_told(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise error

    monkeypatch.setattr(getpass, "getuser", nameless)
    if hasattr(os, "getuid"):
        assert account() == f"account {os.getuid()}"
    else:
        assert account() == "unknown account"
