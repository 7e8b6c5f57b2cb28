"""The spool: bounded, on disk, in order."""

import multiprocessing
import os
import resource
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from bson import ObjectId

from ingest.errors import StoreUnavailable
from ingest.recording.spool import Spool


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
    there = {document["_id"] for _, document in spool.oldest(10**6)}
    assert {one for batch in kept for one in batch} <= there
    spool.close()
