"""An encrypted journal reads like a plain one, verifies without a key, and shows nothing."""

import hashlib
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from canary import CANARY, found_in
from labharness.core.files.data_key import make_data_key
from labharness.journal import JournalFailed, SqliteJournal
from labharness.journal.artifacts import INDEX, ArtifactRefused, Artifacts, resolve
from labharness.journal.chain import Record
from labharness.journal.encryption import (
    KEY_NAME,
    KeyMissing,
    RunKey,
    kept,
    key_of,
    make_run_key,
)
from labharness.journal.reading import export_jsonl, read, read_after, samples, verify_file
from labharness.journal.salvage import salvage

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
BODIES = st.dictionaries(st.text(max_size=8), VALUES, max_size=4)
FACTS = st.lists(st.tuples(BODIES, st.binary(max_size=300) | st.none()), min_size=1, max_size=12)
Facts = list[tuple[dict[str, Any], bytes | None]]


def key_in(folder: Path, name: str = "run") -> RunKey:
    run = folder / name
    run.mkdir(parents=True)
    if not (folder / "data.key").exists():
        make_data_key(folder / "data.key")
    return make_run_key(run / KEY_NAME, folder / "data.key", "T3")


def written(path: Path, facts: Facts, key: RunKey | None) -> Path:
    with SqliteJournal(path, key=key) as journal:
        stream = journal.stream("furnace", ["c"])
        for number, (body, block) in enumerate(facts):
            if block is None:
                journal.append("fact", body, float(number))
            else:
                journal.append_block("queried", body, block, float(number))
            journal.sample(stream, float(number), (number / 7.0,))
    return path


def told(path: Path) -> list[Record]:
    return [replace(each, hash="") for each in read(path)]


@settings(max_examples=25, deadline=None)
@given(facts=FACTS)
def test_an_encrypted_journal_reads_like_a_plain_one(facts: Facts) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        hidden = written(folder / "run" / "journal.sqlite", facts, key_in(folder))
        (folder / "plain").mkdir()
        plain = written(folder / "plain" / "journal.sqlite", facts, None)
        assert told(hidden) == told(plain)
        assert list(samples(hidden)) == list(samples(plain))
        after = [replace(each, hash="") for each in read_after(hidden, 2)]
        assert after == [replace(each, hash="") for each in read_after(plain, 2)]
        (folder / "data.key").unlink()
        assert verify_file(hidden).ok
        with pytest.raises(KeyMissing):
            list(read(hidden))


@pytest.fixture
def hidden(tmp_path: Path) -> Path:
    facts: Facts = [({"note": CANARY}, None), ({"of": 1}, CANARY.encode() * 50)] * 5
    return written(tmp_path / "run" / "journal.sqlite", facts, key_in(tmp_path))


@pytest.mark.promise(71)
def test_no_record_block_sample_or_export_shows_what_it_holds(hidden: Path) -> None:
    with (hidden.parent / "export.jsonl").open("wb") as out:
        export_jsonl(hidden, out)
    assert found_in(hidden.parent) == []


@pytest.mark.parametrize("column", ["data", "hash", "block"])
def test_a_changed_byte_of_what_is_stored_is_found_without_the_key(
    hidden: Path, column: str
) -> None:
    (hidden.parent.parent / "data.key").unlink()
    with closing(sqlite3.connect(hidden)) as database:
        where = f"WHERE {column} IS NOT NULL ORDER BY seq DESC LIMIT 1"
        seq, stored = database.execute(f"SELECT seq, {column} FROM groups {where}").fetchone()
        middle = len(stored) // 2
        changed = stored[:middle] + bytes([stored[middle] ^ 1]) + stored[middle + 1 :]
        database.execute(f"UPDATE groups SET {column} = ? WHERE seq = ?", (changed, seq))
        database.commit()
    assert not verify_file(hidden).ok


def test_the_valid_beginning_of_a_damaged_one_is_read_with_its_key(hidden: Path) -> None:
    before = told(hidden)
    with closing(sqlite3.connect(hidden)) as database:
        (last,) = database.execute("SELECT max(seq) FROM groups").fetchone()
        database.execute("UPDATE groups SET hash = zeroblob(32) WHERE seq = ?", (last,))
        database.commit()
    found = salvage(hidden)
    assert not found.ok
    after = told(hidden)
    assert after[:-1] == before[: found.head.seq]
    assert after[-1].kind == "salvaged"
    assert found_in(hidden.parent) == []


@pytest.mark.promise(71)
def test_a_record_does_not_stand_in_the_place_of_another(tmp_path: Path) -> None:
    key = key_in(tmp_path)
    first, _ = key.record(1, 0.0, b"one", None)
    again, _ = key.record(1, 0.0, b"one", None)
    assert first != again, "each text has a nonce of its own"
    sealed = key.encrypt("record 1", b"one")
    assert key.decrypt("record 1", sealed) == b"one"
    for what in ("record 2", "file one", "block 1"):
        with pytest.raises(KeyMissing, match="cannot be decrypted"):
            key.decrypt(what, sealed)
    with pytest.raises(KeyMissing, match="cannot be decrypted"):
        key_in(tmp_path, "other").decrypt("record 1", sealed)


def test_an_encrypted_journal_is_not_continued(hidden: Path) -> None:
    with pytest.raises(JournalFailed, match="not continued"):
        SqliteJournal(hidden, key=key_of(hidden.parent / KEY_NAME))


def test_artifacts_are_listed_as_they_were_before_they_were_encrypted(tmp_path: Path) -> None:
    key = key_in(tmp_path)
    folder = tmp_path / "run" / "artifacts"
    made = Artifacts(folder, "s-1", key).put("curve", "curve.csv", "text/csv", CANARY.encode())
    plain = Artifacts(tmp_path / "p" / "artifacts", "s-1")
    assert made == plain.put("curve", "curve.csv", "text/csv", CANARY.encode())
    assert Artifacts(folder, "s-1", key).list() == (made,)
    assert kept(resolve(made.uri, [folder])) == CANARY.encode()
    assert found_in(tmp_path / "run") == []
    (tmp_path / "data.key").unlink()
    with pytest.raises(KeyMissing):
        resolve(made.uri, [folder])
    roots = [folder, tmp_path / "p" / "artifacts"]
    assert kept(resolve(made.uri, roots)) == CANARY.encode(), "another run may have it"


def test_an_artifact_that_no_run_has_is_told_so_although_one_cannot_be_read(tmp_path: Path) -> None:
    key = key_in(tmp_path)
    folder = tmp_path / "run" / "artifacts"
    Artifacts(folder, "s-1", key).put("curve", "curve.csv", "text/csv", b"1")
    with pytest.raises(ArtifactRefused):
        resolve("hcp://session-s-1/artifacts/none.csv", [folder])


SPOILT: dict[str, Callable[[str], str]] = {
    "no JSON": lambda text: text[:-20],
    "another class": lambda text: text.replace('"T3"', '"T1"'),
    "another wrapped key": lambda text: text.replace('"wrapped": "', '"wrapped": "00'),
    "no wrapped key": lambda text: text.replace("wrapped", "rapped"),
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_spoilt_key_of_a_run_is_one_plain_error(hidden: Path, name: str) -> None:
    place = hidden.parent / KEY_NAME
    place.write_text(SPOILT[name](place.read_text("utf-8")), "utf-8")
    with pytest.raises(KeyMissing, match=r"key\.json cannot be decrypted"):
        list(read(hidden))


def test_another_master_key_is_named(hidden: Path) -> None:
    master = hidden.parent.parent / "data.key"
    master.unlink()
    make_data_key(master)
    with pytest.raises(KeyMissing, match="another key"):
        list(read(hidden))


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
