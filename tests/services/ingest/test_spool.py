"""The spool: bounded, on disk, in order; and what damage does to it."""

import multiprocessing
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bson
import pytest
from bson import ObjectId

from ingest.errors import StoreUnavailable
from ingest.recording.spool import Spool
from ingest.storage.detections import documents as stored


def documents(count: int) -> list[dict[str, Any]]:
    return [{"_id": ObjectId(), "staff_id": number} for number in range(count)]


def test_what_comes_first_leaves_first(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool.db", 100)
    first, second = documents(3), documents(2)
    spool.append(first)
    spool.append(second)
    rows = spool.oldest(4)
    assert [document for _, document in rows] == [*first, second[0]]
    spool.remove([number for number, _ in rows])
    assert ([document for _, document in spool.oldest(9)], len(spool)) == ([second[1]], 1)
    spool.close()


def test_a_repeat_is_kept_once(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool.db", 100)
    wanted = documents(2)
    spool.append(wanted)
    spool.append(wanted)
    assert (len(spool), len(spool.oldest(9))) == (2, 2)
    spool.close()


def test_a_full_spool_takes_nothing_more(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool.db", 3)
    spool.append(documents(2))
    with pytest.raises(StoreUnavailable, match="the spool is full: 2 detections wait"):
        spool.append(documents(2))
    assert len(spool) == 2
    spool.close()


def fill_a_small_disk(path: Path, results: Any) -> None:
    # No file may grow past 256 KiB: for SQLite that is a full disk.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (256 * 1024, 256 * 1024))
    spool = Spool(path, 10**6)
    kept = 0
    try:
        while True:
            spool.append(documents(50))
            kept += 50
    except StoreUnavailable as error:
        results.put((kept, len(spool), str(error)))


@pytest.mark.long
def test_a_full_disk_is_a_refusal_and_loses_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    process = context.Process(target=fill_a_small_disk, args=(tmp_path / "spool.db", results))
    process.start()
    kept, said, error = results.get(timeout=30)
    process.join(10)
    assert error.startswith("the spool takes nothing: ")
    spool = Spool(tmp_path / "spool.db", 10**6)
    assert kept == said == len(spool) == len(spool.oldest(10**6)) > 0
    spool.close()


def append_for_ever(path: Path, results: Any) -> None:
    spool = Spool(path, 10**6)
    while True:
        batch = documents(3)
        spool.append(batch)
        results.put([document["_id"] for document in batch])


@pytest.mark.long
def test_kill_9_loses_nothing_that_was_kept(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    process = context.Process(target=append_for_ever, args=(tmp_path / "spool.db", results))
    process.start()
    kept = [results.get()]
    until = time.monotonic() + 1
    while time.monotonic() < until:
        kept.append(results.get())
    assert process.pid
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    spool = Spool(tmp_path / "spool.db", 10**6)
    there = {document["_id"] for _, document in spool.oldest(10**6) if document}
    assert {detection for batch in kept for detection in batch} <= there
    spool.close()


def whole(number: int) -> dict[str, Any]:
    key = (str(number), 1)
    return stored.document(number, ("1", "Lobby"), 1 + number, -20, "A" * 12, 1.0, key)


def filled(path: Path, count: int) -> list[dict[str, Any]]:
    """Return what a spool holds that was closed."""
    spool = Spool(path, count)
    kept = [whole(number) for number in range(count)]
    spool.append(kept)
    spool.close()
    return kept


def drained(spool: Spool) -> list[int]:
    """Take all out of a spool, and return whose detections those were."""
    staff_ids: list[int] = []
    while rows := spool.oldest(500):
        spool.put_aside([number for number, document in rows if document is None])
        staff_ids += [document["staff_id"] for _, document in rows if document]
        spool.remove([number for number, _ in rows])
    assert spool.empty
    return staff_ids


@pytest.mark.long
def test_each_flipped_bit_of_a_row_is_found_and_takes_nothing_else_along(tmp_path: Path) -> None:
    path = tmp_path / "spool.db"
    filled(path, 3)
    with sqlite3.connect(path) as file:
        ((good,),) = file.execute("SELECT document FROM spool WHERE number = 2")
        for bit in range(len(good) * 8):
            damaged = bytearray(good)
            damaged[bit // 8] ^= 1 << bit % 8
            row = (bytes([bit // 256, bit % 256]), bytes(damaged))
            file.execute("INSERT INTO spool (id, document) VALUES (?, ?)", row)
        # And a bit of what SQLite notes of its type: a text, a number.
        file.execute("INSERT INTO spool (id, document) VALUES ('t', CAST(x'ff' AS TEXT)), ('n', 7)")
    file.close()
    for _ in range(2):  # the count survives a restart
        spool = Spool(path, 10**6)
        assert drained(spool) in ([0, 1, 2], [])
        assert spool.set_aside == len(good) * 8 + 2
        spool.append([whole(7)])
        assert drained(spool) == [7]
        spool.close()


def test_a_spool_of_the_version_before_drains_but_for_its_damaged_rows(tmp_path: Path) -> None:
    """It had no checksums: what decodes to a detection is taken for one."""
    path = tmp_path / "spool.db"
    filled(path, 0)
    kept = [whole(number) for number in range(3)]
    rows = [(row["_id"].binary, bson.encode(row)) for row in kept]
    wrong = [
        bson.encode(kept[1] | {"rssi": "x"}),
        rows[1][1].replace(b"level", b"lefel"),
        b"",
        b"x",
    ]
    rows[1:2] = [(str(number).encode(), one) for number, one in enumerate(wrong)]
    with sqlite3.connect(path) as file:
        file.executemany("INSERT INTO spool (id, document) VALUES (?, ?)", rows)
    file.close()
    spool = Spool(path, 10**6)
    assert drained(spool) == [0, 2]
    assert spool.set_aside == 4
    spool.close()


PAGE = 4096


def torn(content: bytes) -> bytes:
    return content[: len(content) // 2 + 100]


def scratched(content: bytes) -> bytes:
    """Return the content with every 20th page overwritten, but for the first three."""
    pages = [content[at : at + PAGE] for at in range(0, len(content), PAGE)]
    noise = random.Random(1)
    for number in range(20, len(pages), 20):
        pages[number] = noise.randbytes(PAGE)
    return b"".join(pages)


@pytest.mark.parametrize(
    ("damage", "least"),
    [
        (torn, 0.3),
        (scratched, 0.8),
        (lambda content: content[:PAGE] + b"\xff" * PAGE + content[2 * PAGE :], 0),  # a root
        (lambda content: b"\0" * 100 + content[100:], 0),
        (lambda _: b"no SQLite file\n" * 100, 0),
    ],
)
def test_of_a_damaged_file_is_saved_what_can_be_read(
    tmp_path: Path, damage: Callable[[bytes], bytes], least: float
) -> None:
    path = tmp_path / "spool.db"
    filled(path, 5000)
    content = damage(path.read_bytes())
    path.write_bytes(content)
    spool = Spool(path, 10**6)
    saved = len(spool)
    assert 5000 * least <= saved < 5000
    assert (tmp_path / "spool.db.damaged-1").read_bytes() == content
    spool.append([whole(7000)])
    numbers = drained(spool)
    assert len(numbers) == len(set(numbers))
    assert set(numbers) <= {*range(5000), 7000}
    assert len(numbers) + spool.set_aside - 1 == saved + 1
    assert 7000 in numbers
    spool.close()
    again = Spool(path, 10)
    assert again.set_aside == spool.set_aside >= 1
    again.close()


def test_damage_that_is_met_while_it_drains_deletes_nothing_that_came_since(tmp_path: Path) -> None:
    path = tmp_path / "spool.db"
    filled(path, 5000)
    spool = Spool(path, 10**6)
    rows = spool.oldest(10)
    with path.open("r+b") as file:
        content = scratched(path.read_bytes())
        file.write(content)
    spool._open_file.execute("PRAGMA shrink_memory")  # type: ignore[union-attr]  # nothing is cached
    with pytest.raises(sqlite3.DatabaseError):
        spool.oldest(5000)
    spool.append([whole(7000)])  # in the next file already, whose numbers are others
    spool.remove([number for number, _ in rows])
    assert spool.set_aside == 1
    numbers = drained(spool)
    assert len(numbers) > 4000
    assert {*range(10), 7000} <= set(numbers)
    spool.close()


def test_a_rescue_that_was_cut_off_is_done_at_the_next_start(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool.db", 10)
    spool.append([whole(1)])
    cut_off = tmp_path / "cut-off"
    cut_off.mkdir()
    shutil.copy(tmp_path / "spool.db", cut_off / "spool.db.damaged")
    shutil.copy(tmp_path / "spool.db-wal", cut_off / "spool.db-wal")  # it was not moved yet
    spool.close()
    again = Spool(cut_off / "spool.db", 10)
    assert (drained(again), again.set_aside) == ([1], 1)
    again.close()


def test_what_is_no_file_is_set_aside_too(tmp_path: Path) -> None:
    path = tmp_path / "spool.db"
    for number in (1, 2):
        path.mkdir()
        (path / "something").touch()
        spool = Spool(path, 10)
        spool.append([whole(number)])
        assert (drained(spool), spool.set_aside) == ([number], number)
        spool.delete()
    assert (tmp_path / "spool.db.damaged-2" / "something").exists()


WITHOUT_RIGHTS = """
import sys
from pathlib import Path
from ingest.recording.spool import Spool
spool = Spool(Path(sys.argv[1]), 10)
print(len(spool), spool.set_aside)
"""


@pytest.mark.long
def test_a_file_without_permission_is_set_aside_or_named(tmp_path: Path, root: Path) -> None:
    path = tmp_path / "spool.db"
    filled(path, 5)
    path.chmod(0)
    command = [sys.executable, "-c", WITHOUT_RIGHTS, str(path)]
    if os.geteuid() == 0:
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]
    options: dict[str, Any] = {"cwd": root / "services" / "ingest", "capture_output": True}
    tmp_path.chmod(0o500)
    refused = subprocess.run(command, text=True, check=False, **options)
    tmp_path.chmod(0o700)
    assert str(path) in refused.stderr.splitlines()[-1]
    assert refused.returncode == 1
    assert subprocess.run(command, text=True, check=True, **options).stdout == "0 1\n"
