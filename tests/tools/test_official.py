"""MongoDB's own build, from a server of this machine that has a stand-in for its archive."""

import hashlib
import io
import os
import socket
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mongo import official, prepare, processor
from mongo.binaries import NoMongod, find_binaries, version
from mongo.official import NotToBeHad
from scripts.processes.ports import free_port

NAME = "mongodb-linux-x86_64-ubuntu2204-7.0.14"
TELLS = "#!/bin/sh\necho 'db version v7.0.14'\n"


def archive(*programs: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name in (f"{NAME}/README", f"{NAME}/../../escaped", *programs):
            member = tarfile.TarInfo(name)
            member.size = len(TELLS)
            tar.addfile(member, io.BytesIO(TELLS.encode()))
    return packed.getvalue()


class Mirror(ThreadingHTTPServer):
    """Serves a folder; it counts what it was asked for."""

    asked = 0

    def process_request(self, request: object, client_address: object) -> None:
        self.asked += 1
        super().process_request(request, client_address)  # type: ignore[arg-type]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its name there
        """Say nothing."""


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    monkeypatch.delenv("MONGODB_BIN", raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(official, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(processor, "CPUINFO", cpuinfo(tmp_path, "fpu avx atomics dcpop"))
    served = tmp_path / "served"
    served.mkdir()
    whole = archive(f"{NAME}/bin/mongod", f"{NAME}/bin/mongos")
    (served / "whole.tgz").write_bytes(whole)
    with Mirror(("127.0.0.1", 0), partial(Quiet, directory=str(served))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        monkeypatch.setenv("MONGODB_TARBALL", f"{address}/whole.tgz")
        monkeypatch.setenv("MONGODB_TARBALL_SHA256", hashlib.sha256(whole).hexdigest())
        yield server
        server.shutdown()
        thread.join()


def cpuinfo(folder: Path, flags: str) -> Path:
    file = folder / "cpuinfo"
    file.write_text(f"processor\t: 0\nflags\t\t: {flags}\nFeatures\t: {flags}\n\n")
    return file


def ensure_official(root: Path, *programs: str) -> list[str]:
    """Return what the script's function of this name says, and what it found."""
    script = '. scripts/lib.sh; ensure_official "$@"; echo "next: $official"'
    return subprocess.run(
        ["bash", "-c", script, "bash", *programs],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()


def test_it_is_fetched_once_and_has_both_programs(mirror: Mirror, tmp_path: Path) -> None:
    folder = official.ensure()
    assert sorted(file.name for file in folder.iterdir()) == ["mongod", "mongos"]
    assert official.ensure() == folder
    assert mirror.asked == 1
    for sharded in (False, True):
        assert find_binaries(sharded=sharded) == folder
        text = f"MongoDB 7.0.14, MongoDB's own build [{folder}]"
        assert version(sharded=sharded) == ("7.0.14", text)
    assert [path.name for path in tmp_path.rglob("escaped")] == []
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [folder.parent.name]


def test_what_has_another_digest_is_not_unpacked(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tarfile, "open", None)
    monkeypatch.setenv("MONGODB_TARBALL_SHA256", "0" * 64)
    with pytest.raises(NotToBeHad, match=f"has the SHA-256 [0-9a-f]{{64}}, not {'0' * 64}"):
        official.ensure()
    assert list((tmp_path / "cache").iterdir()) == []
    assert official.kept() is None


@pytest.mark.parametrize("there", ["nobody", "silence"])
def test_without_a_way_to_it_the_next_way_is_taken_soon(
    mirror: Mirror, root: Path, monkeypatch: pytest.MonkeyPatch, there: str
) -> None:
    monkeypatch.setattr(official, "ANSWER_SECONDS", 0.5)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1] if there == "silence" else free_port()
        monkeypatch.setenv("MONGODB_TARBALL", f"http://127.0.0.1:{port}/whole.tgz")
        with pytest.raises(NotToBeHad, match=r"whole\.tgz: "):
            official.ensure()
    monkeypatch.setenv("MONGODB_TARBALL", f"http://127.0.0.1:{free_port()}/whole.tgz")
    said = ensure_official(root, "mongod")
    assert said[-2].startswith("  MongoDB's own build ... not to be had: http://127.0.0.1:")
    assert said[-1] == "next: "


def test_it_is_asked_for_where_path_lacks_one_of_the_programs(
    mirror: Mirror, tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "mongod").touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:{os.environ['PATH']}")
    monkeypatch.setenv("MONGODB_TARBALL", f"http://127.0.0.1:{free_port()}/whole.tgz")
    assert ensure_official(root, "mongod") == ["next: "]
    assert "not to be had" in ensure_official(root, "mongod", "mongos")[-2]


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the flags of another processor")
def test_a_processor_that_cannot_run_it_is_told(
    mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "CPUINFO", cpuinfo(tmp_path, "fpu sse"))
    with pytest.raises(NotToBeHad, match="this processor lacks AVX"):
        official.ensure()
    assert mirror.asked == 0
    with pytest.raises(NoMongod, match=r"lacks AVX, which MongoDB 5\.0 and newer need"):
        find_binaries()
    # The Docker stack's servers would end at once, each time that they are started again.
    monkeypatch.setenv("WAYMARK_MEMORY_NEEDED", "1000000000")
    for image, why in (("mongo:7.0", "lacks AVX, which MongoDB 5"), ("own", "from 1000000000")):
        monkeypatch.setenv("MONGO_IMAGE", image)
        assert why in prepare.refusal()
    # Whoever names a build of their own is told when it really does not run.
    own = tmp_path / "mongod"
    own.write_text("#!/bin/sh\nkill -ILL $$\n")
    own.chmod(0o755)
    monkeypatch.setenv("MONGODB_BIN", str(tmp_path))
    with pytest.raises(NoMongod, match=f"this processor cannot run {own}: .* need AVX"):
        version(sharded=False)


def test_the_pinned_digests_are_whole() -> None:
    assert all(len(bytes.fromhex(digest)) == 32 for digest in official.SHA256.values())
    assert set(official.SHA256) == set(processor.NEEDS)
