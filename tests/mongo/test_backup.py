"""Backups of a real database: as of one moment while it is written to, restored whole or not."""

import itertools
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from bson import DatetimeMS, ObjectId, Timestamp
from pymongo import MongoClient
from pymongo.database import Database
from pymongo.errors import OperationFailure

from common import backup_report
from common.schema import COLLECTIONS, DATABASE
from mongo import data, services_role, topology
from mongo.backup import chunks, copying, marks, spools
from mongo.backup.backup import CHANGES, Backup
from mongo.backup.errors import BackupError
from mongo.backup.folder import FolderShelf, locked
from mongo.backup.restoring import differing, restore
from mongo.backup.shelf import MANIFEST, newest
from mongo.clients import Client, as_administrator
from scripts.processes.cluster import Cluster
from scripts.processes.process import Process
from scripts.processes.waiting import eventually

SINGLE = topology.load(topology.EMBEDDED)
WAITING_MIB = 16  # what Python takes, and little more
UNAUTHORIZED = 13

Document = dict[str, Any]


def quietly(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Cluster]]:
    """Return the database that is copied, and one to restore to."""
    folders = [tmp_path_factory.mktemp(name) for name in ("source", "target")]
    with (
        Cluster(SINGLE, folders[0]).running() as source,
        Cluster(SINGLE, folders[1]).running() as target,
    ):
        yield [source, target]


@pytest.fixture
def clients(clusters: list[Cluster]) -> Iterator[list[Client]]:
    """Return their administrators; both are empty."""
    with (
        as_administrator(clusters[0].local.users_set, clusters[0].secrets) as source,
        as_administrator(clusters[1].local.users_set, clusters[1].secrets) as target,
    ):
        for client in (source, target):
            for name in (*(collection.name for collection in COLLECTIONS), marks.MARKS):
                client[DATABASE][name].delete_many({})
            services_role.ensure(client)
        data.bring_up(source[DATABASE], quietly)
        yield [source, target]


@pytest.fixture(autouse=True)
def no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no service: there is none."""
    monkeypatch.setattr("mongo.backup.restoring.OVER_SECONDS", 0)


def row(number: int, /, **fields: Any) -> Document:
    return {
        "_id": ObjectId(f"{number:024x}"),
        "staff_id": number % 7,
        "stored": Timestamp(0, 0),
    } | fields


def fill(database: Database[Document], rows: int = 300) -> None:
    """Store some documents of each kind."""
    database["staff"].insert_many([row(number) for number in range(rows)])
    blocks = [
        {"_id": {"staff_id": n, "last": 9}, "staff_id": n, "rows": bytes(99)} for n in range(9)
    ]
    database["sealed"].insert_many(blocks)
    database["latest"].insert_many([{"_id": n, "version": n, "recent": []} for n in (1, 2, "x")])
    # As of a row of an older release: MongoDB would put its own time there.
    set_zero = [{"$set": {"stored": Timestamp(0, 0)}}]
    database["latest"].update_one({"_id": 1}, set_zero)
    # What other hands have put there: a date that no calendar has.
    database["staff"].insert_one(row(10**9, received_at=DatetimeMS(2**60)))
    database["notes"].insert_one({"_id": "staff", "at": 2**40, "seconds": b"\0", "name": 2**61})
    database["beacons"].insert_many([{"_id": f"{n:012X}", "level": str(n)} for n in range(5)])
    for collection in ("people", "tokens", "accounts", "telemetry", "audit", "lost_contacts"):
        database[collection].insert_one({"_id": collection, "name": "ü", "of": [1, None]})


def contents(client: Client) -> dict[str, list[bytes]]:
    """Return all documents of all collections, as they are stored."""
    raw: Any = client[DATABASE]
    return {
        name: sorted(
            document for batch in raw[name].find_raw_batches() for document in chunks.split(batch)
        )
        for name in (collection.name for collection in COLLECTIONS)
    }


def made(client: Client, folder: Path, spool_folder: Path | None = None) -> Backup:
    return copying.make(client, FolderShelf(folder), spool_folder, "1.0", quietly)


def opened(folder: Path) -> Backup:
    """Open the newest backup in a folder."""
    return Backup.opened(FolderShelf(folder).files(newest(FolderShelf(folder))))


def restored(client: Client, backup: Backup) -> None:
    restore(client, [], backup, None, quietly)


@contextmanager
def written_to(database: Database[Document]) -> Iterator[list[int]]:
    """Write all the time; give how often that was done."""
    count, ended = [0], threading.Event()

    def write() -> None:
        while not ended.is_set():
            count[0] += 1
            write_once(database, count[0])

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield count
    finally:
        ended.set()
        thread.join()


AGO = 50


def write_once(database: Database[Document], number: int) -> None:
    """Insert a row, then tell its number, then delete the row of a while ago."""
    database["staff"].insert_one(row(2**40 + number, number=number))
    database["latest"].update_one({"_id": "count"}, {"$set": {"count": number}}, upsert=True)
    database["staff"].delete_one({"_id": row(2**40 + number - AGO)["_id"]})


def is_of_one_moment(client: Client) -> bool:
    """Tell whether the database is as it was between two of these writes."""
    database = client[DATABASE]
    (count,) = [entry["count"] for entry in database["latest"].find({"_id": "count"})] or [0]
    numbers = [entry["number"] for entry in database["staff"].find({"number": {"$exists": True}})]
    between = (
        range(max(1, count - AGO + 1), count + 1),  # all is done
        range(max(1, count - AGO + 1), count + 2),  # the next one is inserted
        range(max(1, count - AGO), count + 1),  # it is told, and nothing deleted yet
    )
    return sorted(numbers) in [list(numbers) for numbers in between]


def test_what_is_restored_is_what_was_there(clients: list[Client], tmp_path: Path) -> None:
    source, target = clients
    fill(source[DATABASE])
    backup = made(source, tmp_path)
    assert opened(tmp_path).manifest == backup.manifest
    restored(target, backup)
    assert contents(target) == contents(source)
    assert not target[DATABASE][marks.MARKS].find_one()
    assert not source[DATABASE][marks.MARKS].find_one()


@pytest.mark.parametrize("last", [copying.LAST, 5])  # with 5, what changed is copied in rounds, too
def test_it_is_of_one_moment_while_it_is_written_to(
    clients: list[Client], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    monkeypatch.setattr(copying, "LAST", last)
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 20_000)
    source, target = clients
    fill(source[DATABASE], 5000)
    with written_to(source[DATABASE]) as count:
        eventually(lambda: count[0] > AGO)
        first = count[0]
        backup = made(source, tmp_path)
        assert count[0] > first + 10
    assert any(chunk.of == CHANGES for chunk in backup.manifest.chunks)
    restored(target, backup)
    assert is_of_one_moment(target)
    assert target[DATABASE]["latest"].find_one({"_id": "count"})["count"] >= first  # type: ignore[index]


def test_what_changes_faster_than_it_is_copied_is_an_error(
    clients: list[Client], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "LAST", -1)
    fill(clients[0][DATABASE])
    with pytest.raises(BackupError, match="more is changed than can be copied"):
        made(clients[0], tmp_path)
    assert not list(tmp_path.iterdir())


def command(cluster: Cluster, action: str, folder: object) -> list[str]:
    """Return the command of the Docker stack, on a cluster of this test."""
    file = cluster.folder / "topology.toml"
    file.write_text(f'[replica_set]\nembedded = ["{cluster.local.users_set.members[0]}"]\n')
    names = ["--topology", str(file), "--secrets", str(cluster.folder / "secrets")]
    names += ["--report", str(cluster.folder)] if action == "make" else []
    return [sys.executable, "-m", "mongo.backup", action, str(folder), *names]


def test_a_backup_that_is_killed_leaves_the_one_before(
    clusters: list[Cluster], clients: list[Client], tmp_path: Path
) -> None:
    source, target = clients
    fill(source[DATABASE], 100)
    first = made(source, tmp_path)
    before = contents(source)
    source[DATABASE]["people"].insert_one({"_id": "later"})
    for count in itertools.count(1):  # kill -9 at each file that is on the disk
        done = killed_at("os.fsync", count, command(clusters[0], "make", tmp_path))
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        last = opened(tmp_path)
        last.check()
        if last.manifest != first.manifest:  # it was whole before it was killed
            shutil.rmtree(str(last.files))
    assert count > 10
    last = opened(tmp_path)
    assert last.manifest != first.manifest
    assert sorted(path.name for path in tmp_path.iterdir()) == FolderShelf(tmp_path).whole()
    last.check()
    restored(target, first)
    assert contents(target) == before


def test_a_full_disk_leaves_the_one_before(
    clusters: list[Cluster], clients: list[Client], tmp_path: Path
) -> None:
    fill(clients[0][DATABASE], 5000)
    made(clients[0], tmp_path)
    (before,) = tmp_path.iterdir()
    words = ["prlimit", "--fsize=10000", *command(clusters[0], "make", tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stderr == "make: [Errno 27] File too large\n"
    assert list(tmp_path.iterdir()) == [before]


# Runs a module in a process that is killed when it calls a function for the n-th time.
KILLED = """
import os, pkgutil, runpy, signal, sys
where, _, name = sys.argv[1].rpartition(".")
module, real = pkgutil.resolve_name(where), pkgutil.resolve_name(sys.argv[1])
count = [int(sys.argv[2])]
def counted(*given, **named):
    count[0] -= 1
    if not count[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*given, **named)
setattr(module, name, counted)
sys.argv = sys.argv[3:]
runpy.run_module("mongo.backup", run_name="__main__", alter_sys=False)
"""


def killed_at(name: str, count: int, words: list[str]) -> subprocess.CompletedProcess[str]:
    driver = [sys.executable, "-c", KILLED, name, str(count), *words[2:]]
    return subprocess.run(driver, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("_insert", 3),
        pytest.param("_insert", 1, marks=pytest.mark.long),
        pytest.param("_insert", 10, marks=pytest.mark.long),
        pytest.param("differing", 1, marks=pytest.mark.long),
        pytest.param("marks.end_restore", 1, marks=pytest.mark.long),
    ],
)
def test_a_restore_that_is_killed_shows_nobody_half_and_goes_on(
    clusters: list[Cluster], clients: list[Client], tmp_path: Path, name: str, count: int
) -> None:
    source, target = clients
    fill(source[DATABASE], 1000)
    backup = made(source, tmp_path / "one")
    other = made(source, tmp_path / "other")
    words = command(clusters[1], "restore", backup.files)
    killed = killed_at(f"mongo.backup.restoring.{name}", count, words)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert is_refused(clusters[1])
    clusters[1].bootstrap()  # as the next ./scripts/up does
    assert is_refused(clusters[1])
    with pytest.raises(BackupError, match="another backup was interrupted"):
        restored(target, other)
    restored(target, backup)
    assert contents(target) == contents(source)
    assert not is_refused(clusters[1])


@pytest.mark.parametrize("next_command", ["up", "restore"])
def test_a_restore_that_is_killed_at_its_very_end_is_one(
    clusters: list[Cluster], clients: list[Client], tmp_path: Path, next_command: str
) -> None:
    source, target = clients
    fill(source[DATABASE])
    backup = made(source, tmp_path)
    words = command(clusters[1], "restore", backup.files)
    killed = killed_at("mongo.services_role.ensure", 3, words)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert is_refused(clusters[1])
    if next_command == "up":
        clusters[1].bootstrap()
    else:
        with pytest.raises(BackupError, match="not empty"):
            restored(target, backup)
    assert not is_refused(clusters[1])
    assert contents(target) == contents(source)


def is_refused(cluster: Cluster) -> bool:
    """Tell whether the services' user may see nothing."""
    with MongoClient[Document](cluster.uri()) as client:
        try:
            client[DATABASE]["staff"].find_one()
        except OperationFailure as error:
            return error.code == UNAUTHORIZED
    return False


@pytest.mark.parametrize("name", ["staff", "sealed", "people", "tokens", "accounts", "audit"])
def test_nothing_is_restored_over_what_is_there(
    clients: list[Client], tmp_path: Path, name: str
) -> None:
    source, target = clients
    fill(source[DATABASE])
    backup = made(source, tmp_path)
    old = {"_id": "there", "staff_id": 1, "stored": Timestamp(backup.manifest.at[0] - 1, 1)}
    target[DATABASE][name].insert_one(old)
    before = contents(target)
    with pytest.raises(BackupError, match=f"not empty: it has {name}"):
        restored(target, backup)
    assert contents(target) == before
    assert not target[DATABASE][marks.MARKS].find_one()


def test_what_phones_sent_to_the_new_stack_stays(clients: list[Client], tmp_path: Path) -> None:
    source, target = clients
    fill(source[DATABASE])
    backup = made(source, tmp_path)
    # By the stacks' clocks, which both know of the second.
    eventually(lambda: time.time() > backup.manifest.newest[0] + 1)
    # One is new, the other was sent again; what a stack has by itself is replaced.
    target[DATABASE]["staff"].insert_many([row(10**6), row(0)])
    target[DATABASE]["beacons"].insert_one({"_id": "of the new stack", "level": "1"})
    restored(target, backup)
    new = target[DATABASE]["staff"].find_one({"_id": row(10**6)["_id"]})
    assert new
    assert new["stored"] > Timestamp(*backup.manifest.newest)
    target[DATABASE]["staff"].delete_one({"_id": new["_id"]})
    assert contents(target) == contents(source)


def flipped(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


@pytest.mark.parametrize("damage", [flipped, cut, Path.unlink])
def test_a_damaged_backup_is_refused_before_anything_is_done(
    clients: list[Client], tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    source, target = clients
    fill(source[DATABASE])
    backup = made(source, tmp_path)
    for chunk in backup.manifest.chunks:
        copy = Path(shutil.copytree(str(backup.files), tmp_path / f"damaged-{chunk.file}"))
        damage(copy / chunk.file)
        with pytest.raises(BackupError, match=chunk.file):
            restored(target, Backup.opened(FolderShelf(tmp_path).files(copy.name)))
    assert not any(contents(target).values())
    damage(Path(str(backup.files), MANIFEST))
    with pytest.raises(BackupError):
        opened(tmp_path).check()


def test_an_older_backup_is_brought_up_and_a_newer_one_refused(
    clients: list[Client], tmp_path: Path
) -> None:
    source, target = (client[DATABASE] for client in clients)
    data.bring_up(target, quietly)
    kept = data.current(target)["name"]
    source["directory"].delete_many({})  # of a version that gave no name
    source["staff"].insert_one(row(3, staff_id="3", timestamp="1600000000"))
    restored(clients[1], made(clients[0], tmp_path / "older"))
    stored = target["staff"].find_one({"staff_id": 3})
    assert stored
    assert stored["timestamp"] == 1_600_000_000
    assert data.current(target) == {"_id": "data", "name": kept, "version": data.VERSION, "by": ""}
    data.bring_up(source, quietly)
    source["directory"].update_one({"_id": "data"}, {"$inc": {"version": 1}})
    newer = made(clients[0], tmp_path / "newer")
    target["staff"].delete_many({})
    with pytest.raises(data.NewerDataError, match="restore the backup from before"):
        restored(clients[1], newer)
    assert not marks.restoring(target)
    assert data.current(target)["name"] == kept


def test_a_difference_is_named(clients: list[Client], tmp_path: Path) -> None:
    source, target = clients
    fill(source[DATABASE])
    backup = made(source, tmp_path)
    restored(target, backup)
    database = target[DATABASE]
    assert differing(database, backup) == []
    database["staff"].update_one({"staff_id": 3}, {"$set": {"level": "other"}})
    database["staff"].delete_one({"staff_id": 4})
    database["people"].insert_one({"_id": 1})
    assert sorted(differing(database, backup)) == [
        "people: 2 documents, 1 in the backup",
        "staff of staff 3: 43 documents, 43 in the backup",
        "staff of staff 4: 42 documents, 43 in the backup",
    ]


def test_two_at_once_are_refused(
    clusters: list[Cluster], clients: list[Client], tmp_path: Path
) -> None:
    fill(clients[0][DATABASE])
    made(clients[0], tmp_path)
    with locked(tmp_path), pytest.raises(BackupError, match="another backup is at work"):
        made(clients[0], tmp_path)
    with locked(tmp_path):
        words = command(clusters[1], "restore", tmp_path)
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, "is at work" in done.stderr) == (1, True), done.stderr
    assert not any(contents(clients[1]).values())


def test_a_schedule_makes_the_first_at_once_and_then_waits(
    clusters: list[Cluster], clients: list[Client], tmp_path: Path
) -> None:
    fill(clients[0][DATABASE])
    _, _, _, _, folder, *options = command(clusters[0], "make", tmp_path)
    words = [sys.executable, "-m", "mongo.backup.schedule", "--at", "03:00", folder, *options]
    report_file = clusters[0].folder / backup_report.FILE_NAME
    report_file.unlink(missing_ok=True)
    with Process("schedule", words, tmp_path / "log") as process:
        eventually(lambda: (report := backup_report.read(report_file)) and report.finished, 60)
        assert len(FolderShelf(tmp_path).whole()) == 1
        report = backup_report.read(report_file)
        assert report
        assert report.scheduled
        waits = psutil.Process(process.pid)
        eventually(lambda: not waits.children())
        assert process.running()
        assert waits.memory_info().rss < WAITING_MIB * 2**20
    opened(tmp_path).check()


def test_spools_are_copied_while_they_are_written_to_and_given_back(
    clients: list[Client], tmp_path: Path
) -> None:
    folder = tmp_path / "spool"
    folder.mkdir()
    (folder / "empty.db").touch()
    with sqlite3.connect(folder / "ingest-1.db") as spool:
        spool.execute("PRAGMA journal_mode = WAL")
        spool.execute("CREATE TABLE spool (number INTEGER PRIMARY KEY, id BLOB, document BLOB)")
        spool.executemany("INSERT INTO spool (id) VALUES (?)", [(b"1",), (b"2",)])
        spool.commit()
        spool.execute("INSERT INTO spool (id) VALUES ('not yet')")
        backup = made(clients[0], tmp_path / "backups", folder)
        spool.rollback()
    spool.close()
    assert [(chunk.file, chunk.documents) for chunk in backup.manifest.spools] == [
        ("spool/ingest-1.db.00000", 2)
    ]
    new = tmp_path / "new"
    new.mkdir()
    restore(clients[1], [], backup, new, quietly)
    spools.give_back(backup, new)  # once more, as after a kill
    (restored_file,) = new.glob("*.db")
    assert restored_file.with_suffix(".lock").exists()
    with sqlite3.connect(restored_file) as spool:
        assert spool.execute("SELECT id FROM spool").fetchall() == [(b"1",), (b"2",)]
    spool.close()
