"""Backups in a bucket of a real S3 server, versitygw: whole or none, encrypted, within memory."""

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest
from pyrage.x25519 import Identity

from common.schema import DATABASE
from mongo.backup import bucket, chunks, shelves
from mongo.backup.backup import Backup
from mongo.backup.bucket import BucketFiles
from mongo.backup.copying import make
from mongo.backup.encryption import Key
from mongo.backup.errors import BackupError
from mongo.backup.restoring import restore
from mongo.backup.shelf import Shelf, newest, prune
from mongo.clients import Client
from scripts.processes import ALLOCATOR, ROOT
from scripts.processes.cluster import Cluster
from scripts.processes.control_groups import Limits
from scripts.processes.health import http_problem
from scripts.processes.ports import free_port
from scripts.processes.process import Process
from scripts.processes.waiting import eventually
from tests.mongo.test_backup import (
    clients,
    clusters,
    command,
    contents,
    fill,
    killed_at,
    no_wait,
    quietly,
)
from tests.needs import limited, need, only_root

__all__ = ["clients", "clusters", "no_wait"]
pytestmark = pytest.mark.long

HERE = Path(__file__).parent / "versitygw"
PROGRAM = ROOT / ".cache" / "versitygw" / "versitygw"
MOUNTED_BYTES = 100_000
PREFIX = "s3://bucket/stacks/one"
LIMIT_BYTES = 58 * 2**20  # nine tenths of the container's
PRIVATE = Identity.generate()


def program() -> Path:
    """Build the server, whose hashes are in go.sum, unless that was done."""
    need("go")
    built = PROGRAM.parent / "go.sum"
    if not built.exists() or built.read_bytes() != (HERE / "go.sum").read_bytes():
        PROGRAM.parent.mkdir(parents=True, exist_ok=True)
        words = ["go", "build", "-o", str(PROGRAM), "github.com/versity/versitygw/cmd/versitygw"]
        subprocess.run(words, cwd=HERE, check=True)
        shutil.copy(HERE / "go.sum", built)
    return PROGRAM


class Store:
    """A server with a bucket; its objects are files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "store"
        self.objects = self.folder / "bucket"
        self.objects.mkdir(parents=True, exist_ok=True)
        self._log = folder / "store.log"
        self.port = free_port()

    @contextmanager
    def running(self, *options: str) -> Iterator[Process]:
        keys = {"ROOT_ACCESS_KEY": "key", "ROOT_SECRET_KEY": "secret"}
        words = [str(PROGRAM), "--port", f"127.0.0.1:{self.port}", "--health", "/health"]
        words += [*options, "posix", str(self.folder)]
        server = Process("versitygw", words, self._log, environment=os.environ | keys)
        with server:
            health = f"http://127.0.0.1:{self.port}/health"
            eventually(lambda: not http_problem(health))
            yield server

    def names(self) -> set[str]:
        """Return the names of what there is of backups."""
        return {path.name for path in (self.objects / "stacks" / "one").glob("*")}


@pytest.fixture(scope="module")
def built() -> Path:
    return program()


@pytest.fixture
def store(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """Return a running store that the environment names."""
    made = Store(tmp_path)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{made.port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 20_000)
    with made.running():
        yield made


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have requests repeated at once."""
    monkeypatch.setattr(bucket, "FIRST_PAUSE", timedelta(milliseconds=1))
    monkeypatch.setattr(bucket, "LONGEST_PAUSE", timedelta(milliseconds=10))


@pytest.fixture
def shelf(store: Store) -> Shelf:
    return shelves.shelf(PREFIX)


def made(client: Client, shelf: Shelf, public_key: str = "") -> Backup:
    return make(client, shelf, None, "1.0", quietly, public_key)


def test_what_is_restored_from_a_bucket_is_what_was_there(
    clients: list[Client], shelf: Shelf, store: Store
) -> None:
    source, target = clients
    fill(source[DATABASE], 2000)
    source[DATABASE]["people"].insert_one({"_id": 1, "name": "Ada Lovelace"})
    backup = made(source, shelf, str(PRIVATE.to_public()))
    assert len(backup.manifest.chunks) > 10
    assert shelf.whole() == [backup.files.name]
    # Nothing that the store has tells of anybody.
    everything = [path.read_bytes() for path in store.objects.rglob("*") if path.is_file()]
    assert len(everything) == len(backup.manifest.chunks) + 1
    assert not [content for content in everything if b"Lovelace" in content]
    for key, why in (
        (None, "is encrypted to age1.*: give --identity"),
        (Key.of(str(Identity.generate())), "the identity is of age1"),
    ):
        with pytest.raises(BackupError, match=why):
            Backup.opened(shelf.files(newest(shelf)), key)
    kept_in, name = shelves.chosen(f"{PREFIX}/{backup.files.name}")
    restore(target, [], Backup.opened(kept_in.files(name), Key.of(str(PRIVATE))), None, quietly)
    assert contents(target) == contents(source)


def test_a_bucket_copied_to_a_folder_is_one(
    clients: list[Client], shelf: Shelf, store: Store, tmp_path: Path
) -> None:
    source, target = clients
    fill(source[DATABASE])
    made(source, shelf)
    shutil.copytree(store.objects / "stacks" / "one", tmp_path / "copy")
    kept_in, name = shelves.chosen(str(tmp_path / "copy"))
    restore(target, [], Backup.opened(kept_in.files(name)), None, quietly)
    assert contents(target) == contents(source)


def test_an_upload_that_is_killed_leaves_no_half_and_its_rests_go(
    clusters: list[Cluster], clients: list[Client], shelf: Shelf, store: Store
) -> None:
    source, target = clients
    fill(source[DATABASE], 100)
    first = made(source, shelf)
    before = contents(source)
    source[DATABASE]["people"].insert_one({"_id": "later"})
    files = len(first.manifest.chunks) + 1
    for count in (1, files // 2, files):  # the last is the manifest
        words = command(clusters[0], "make", PREFIX)
        done = killed_at("mongo.backup.bucket.BucketFiles.write", count, words)
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert shelf.whole() == [first.files.name]
        # What the killed one left is gone when the next one has begun.
        assert len(store.names()) == (1 if count == 1 else 2)
    restore(target, [], Backup.opened(shelf.files(newest(shelf))), None, quietly)
    assert contents(target) == before
    second = made(source, shelf)
    assert store.names() == {first.files.name, second.files.name}
    assert prune(shelf, (0, 0, 0), second.files.name) == [first.files.name]
    assert store.names() == {second.files.name}
    Backup.opened(shelf.files(newest(shelf))).check()


def test_a_store_that_comes_back_is_waited_for(
    built: Path, clients: list[Client], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is away in the middle; each request is repeated."""
    store = Store(tmp_path)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{store.port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    source, target = clients
    fill(source[DATABASE])
    shelf = shelves.shelf(PREFIX)
    real, count, ended = BucketFiles.write, [0], threading.Event()

    def come_back() -> None:
        time.sleep(1)  # requests fail meanwhile
        server.start()
        ended.wait()  # the server ends with the thread that started it

    thread = threading.Thread(target=come_back)

    def interrupted(files: BucketFiles, file: str, content: bytes) -> None:
        count[0] += 1
        if count[0] == 5:
            server.stop()
            thread.start()
        real(files, file, content)

    monkeypatch.setattr(BucketFiles, "write", interrupted)
    with store.running() as server:
        try:
            backup = made(source, shelf)
            restore(target, [], backup, None, quietly)
        finally:
            ended.set()
    thread.join()
    assert contents(target) == contents(source)


@pytest.mark.parametrize("damage", ["flipped", "gone"])
def test_a_damaged_object_is_named_before_anything_is_done(
    clients: list[Client], shelf: Shelf, store: Store, damage: str
) -> None:
    source, target = clients
    fill(source[DATABASE])
    backup = made(source, shelf)
    chunk = backup.manifest.chunks[2]
    file = store.objects / "stacks" / "one" / backup.files.name / chunk.file
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    shelf.files(backup.files.name).write(chunk.file, bytes(content))
    if damage == "gone":
        file.unlink()
    with pytest.raises(BackupError, match=chunk.file):
        restore(target, [], Backup.opened(shelf.files(backup.files.name)), None, quietly)
    assert not any(contents(target).values())


@pytest.mark.parametrize(
    ("where", "variables", "why"),
    [
        ("s3://nobody/x", {}, "s3://nobody/x: the store says NoSuchBucket"),
        (PREFIX, {"AWS_SECRET_ACCESS_KEY": "wrong"}, "the store says SignatureDoesNotMatch"),
        ("s3:///x", {}, "s3:///x names no bucket: give s3://bucket/prefix"),
    ],
)
def test_what_a_store_denies_is_said_in_a_line(
    clusters: list[Cluster],
    clients: list[Client],
    store: Store,
    where: str,
    variables: dict[str, str],
    why: str,
) -> None:
    done = subprocess.run(
        command(clusters[0], "make", where),
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert why in done.stderr
    assert done.stderr.count("\n") == 1
    assert not store.names()


@only_root
def test_a_store_that_is_full_is_said(
    hasty: None, clients: list[Client], shelf: Shelf, store: Store
) -> None:
    fill(clients[0][DATABASE])
    first = made(clients[0], shelf)
    fullness = store.objects / "fill"
    with mounted(store.objects):
        with fullness.open("wb") as file, suppress(OSError):
            file.write(bytes(MOUNTED_BYTES - 20_000))
        with pytest.raises(BackupError, match=f"{PREFIX}: the store says .*No space left"):
            made(clients[0], shelf)
        assert not store.names()
    assert shelf.whole() == [first.files.name]


@contextmanager
def mounted(folder: Path) -> Iterator[None]:
    """Have a small disk over a folder."""
    words = ["mount", "-t", "tmpfs", "-o", f"size={MOUNTED_BYTES}", "tmpfs", str(folder)]
    subprocess.run(words, check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_store_that_lets_us_only_read_is_said(
    clients: list[Client], shelf: Shelf, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(clients[0][DATABASE])
    first = made(clients[0], shelf)
    reads = Store(store.folder / "..")
    with reads.running("--readonly"):
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{reads.port}")
        with pytest.raises(BackupError, match="AccessDenied"):
            made(clients[0], shelves.shelf(PREFIX))
    assert store.names() == {first.files.name}


def test_a_store_that_is_away_is_given_up_in_time(
    hasty: None, clients: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with pytest.raises(BackupError, match=f"after {bucket.RETRIES} retries.*error sending"):
        made(clients[0], shelves.shelf(PREFIX))


@limited
def test_memory_is_bounded_with_encryption(
    clusters: list[Cluster], clients: list[Client], store: Store, tmp_path: Path
) -> None:
    """More than it may take, of what compresses and what does not."""
    database = clients[0][DATABASE]
    for first in range(0, 20_000, 5000):
        database["staff"].insert_many(
            [
                {"_id": number, "staff_id": f"staff {number:024}", "of": "x" * 200}
                for number in range(first, first + 5000)
            ]
        )
    for first in range(0, 4000, 1000):
        database["sealed"].insert_many(
            [
                {"_id": number, "staff_id": number, "rows": os.urandom(16_000)}
                for number in range(first, first + 1000)
            ]
        )
    (tmp_path / "key").write_text(f"{PRIVATE}\n")
    key = {"WAYMARK_BACKUP_KEY": str(PRIVATE.to_public())}
    for action, cluster, options in (
        ("make", clusters[0], []),
        ("restore", clusters[1], ["--identity", str(tmp_path / "key")]),
    ):
        words = [*command(cluster, action, PREFIX), *options]
        log = tmp_path / f"{action}.log"
        limits = Limits(None, LIMIT_BYTES)
        variables = os.environ | ALLOCATOR | key
        with Process(action, words, log, environment=variables, limits=limits) as process:
            assert process.wait(200) == 0, process.log
    assert clients[1][DATABASE]["staff"].count_documents({}) == 20_000
