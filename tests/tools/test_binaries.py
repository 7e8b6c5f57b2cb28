"""Where the MongoDB binaries come from."""

import platform
from pathlib import Path

import pytest

from mongo import binaries, official
from mongo.binaries import NoMongod, find_binaries, is_emulated


def test_the_named_folder_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MONGODB_BIN", str(tmp_path))
    with pytest.raises(NoMongod, match="there is no program mongod in it"):
        find_binaries()
    (tmp_path / "mongod").touch(mode=0o755)
    assert find_binaries() == tmp_path
    with pytest.raises(NoMongod, match="there is no program mongos in it"):
        find_binaries(sharded=True)
    (tmp_path / "mongos").touch(mode=0o755)
    assert find_binaries(sharded=True) == tmp_path


def folder_with(folder: Path, *programs: str) -> Path:
    folder.mkdir()
    for program in programs:
        (folder / program).touch(mode=0o755)
    return folder


@pytest.mark.parametrize("sharded", [False, True])
def test_the_named_folder_comes_before_path_and_that_before_mongodbs_own_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, sharded: bool
) -> None:
    named, path, own = (
        folder_with(tmp_path / name, "mongod", "mongos") for name in ("named", "path", "own")
    )
    monkeypatch.setattr(official, "kept", lambda: own)
    monkeypatch.setenv("MONGODB_BIN", str(named))
    monkeypatch.setenv("PATH", str(path))
    assert find_binaries(sharded=sharded) == named
    monkeypatch.delenv("MONGODB_BIN")
    assert find_binaries(sharded=sharded) == path
    (path / "mongod").unlink()
    assert find_binaries(sharded=sharded) == own


def test_path_comes_before_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mongod").touch(mode=0o755)
    monkeypatch.delenv("MONGODB_BIN", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_binaries() == tmp_path
    monkeypatch.setattr(binaries, "FETCHED", tmp_path / "fetched")
    with pytest.raises(NoMongod, match="run mongo/fetch-emulated, or set MONGODB_BIN"):
        find_binaries(sharded=True)
    (tmp_path / "fetched").mkdir()
    assert find_binaries(sharded=True) == tmp_path / "fetched"
    for machine, emulates in (("x86_64", True), ("aarch64", False)):
        monkeypatch.setattr(platform, "machine", lambda machine=machine: machine)
        assert is_emulated() == emulates
    (tmp_path / "mongos").touch(mode=0o755)
    assert not is_emulated()
