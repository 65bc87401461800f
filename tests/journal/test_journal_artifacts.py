"""Artifacts: whole files under checksums, and no way out of their directory."""

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labharness.journal.artifacts import INDEX, ArtifactRefused, Artifacts, resolve


def test_an_artifact_is_written_listed_and_found(tmp_path: Path) -> None:
    artifacts = Artifacts(tmp_path, "abc")
    made = artifacts.put("growth_log", "growth_log.csv", "text/csv", b"t,T\n")
    assert made.uri == "hcp://session-abc/artifacts/growth_log.csv"
    assert made.size_bytes == 4
    assert made.checksum == "sha256:" + hashlib.sha256(b"t,T\n").hexdigest()
    assert resolve(made.uri, [tmp_path]).read_bytes() == b"t,T\n"
    assert Artifacts(tmp_path, "abc").list() == (made,)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["growth_log.csv", INDEX]


def test_the_same_artifacts_give_the_same_index(tmp_path: Path) -> None:
    for name in ("a", "b"):
        Artifacts(tmp_path / name, "abc").put("raw", "raw.json", "application/json", b"{}")
    assert (tmp_path / "a" / INDEX).read_bytes() == (tmp_path / "b" / INDEX).read_bytes()


def test_bytes_are_on_the_disk_before_their_name_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[list[str]] = []
    monkeypatch.setattr(
        "os.fsync", lambda _: synced.append(sorted(one.name for one in tmp_path.iterdir()))
    )
    Artifacts(tmp_path, "abc").put("raw", "raw.json", "application/json", b"{}")
    assert synced == [
        [".raw.json.part"],
        ["raw.json"],
        [".index.json.part", "raw.json"],
        ["index.json", "raw.json"],
    ]


def test_evidence_is_not_overwritten(tmp_path: Path) -> None:
    artifacts = Artifacts(tmp_path, "abc")
    first = artifacts.put("raw", "raw.json", "application/json", b"{}")
    assert artifacts.put("raw", "raw.json", "application/json", b"{}") == first
    with pytest.raises(ArtifactRefused, match="other contents"):
        artifacts.put("raw", "raw.json", "application/json", b"[]")
    assert (tmp_path / "raw.json").read_bytes() == b"{}"


def test_a_directory_belongs_to_one_session(tmp_path: Path) -> None:
    Artifacts(tmp_path, "abc").put("raw", "raw.json", "application/json", b"{}")
    with pytest.raises(ArtifactRefused, match="of session abc"):
        Artifacts(tmp_path, "def")


@pytest.mark.parametrize(
    "filename", ["../x", "/etc/passwd", "a/b", ".hidden", "", INDEX, "a\x00b", "a\n", "x" * 129]
)
def test_an_unsafe_name_is_not_written(tmp_path: Path, filename: str) -> None:
    with pytest.raises(ArtifactRefused, match="is not an artifact name"):
        Artifacts(tmp_path, "abc").put("x", filename, "text/plain", b"")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "uri",
    [
        "hcp://session-abc/artifacts/../secret",
        "hcp://session-abc/artifacts/%2e%2e/secret",
        "hcp://session-../artifacts/raw.json",
        "hcp://session-abc/artifacts/raw.json/",
        "hcp://session-abc/artifacts/raw.json\n",
        "hcp://session-abc/artifacts/index.json",
        "hcp://session-abc/artifacts/unlisted.txt",
        "hcp://session-other/artifacts/raw.json",
        "file:///etc/passwd",
        "",
    ],
)
def test_no_address_leads_out_of_the_listed_files(tmp_path: Path, uri: str) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    root = tmp_path / "artifacts"
    Artifacts(root, "abc").put("raw", "raw.json", "application/json", b"{}")
    (root / "unlisted.txt").write_bytes(b"x")
    with pytest.raises(ArtifactRefused):
        resolve(uri, [root, tmp_path])


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    root = tmp_path / "artifacts"
    made = Artifacts(root, "abc").put("raw", "raw.json", "application/json", b"{}")
    (root / "raw.json").unlink()
    (root / "raw.json").symlink_to(tmp_path / "secret")
    with pytest.raises(ArtifactRefused, match="link"):
        resolve(made.uri, [root])


def test_a_damaged_index_is_an_error_and_not_an_empty_one(tmp_path: Path) -> None:
    Artifacts(tmp_path, "abc").put("raw", "raw.json", "application/json", b"{}")
    (tmp_path / INDEX).write_text(json.dumps({"session_id": "abc"}))
    with pytest.raises(ArtifactRefused, match="cannot be read"):
        Artifacts(tmp_path, "abc")


@given(st.text(max_size=40))
@settings(deadline=None, max_examples=60)
def test_any_text_as_an_address_is_refused(text: str) -> None:
    with pytest.raises(ArtifactRefused):
        resolve("hcp://session-abc/artifacts/" + text, [])
