"""The directory of beacons in the process's memory."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import Mock

import pytest
from pymongo.database import Database

from common.beacon import Beacon
from common.revisions import CHECK_SECONDS
from ingest.errors import StoreUnavailable
from ingest.storage.directory.beacons import Beacons
from ingest.storage.directory.directory import Directory, Place
from mongo.directory import load, parse
from scripts.processes.waiting import eventually
from tests.services.ingest.conftest import BEACON


def place(directory: Directory, mac: str) -> Place | None:
    return directory.current().places.get(mac)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_an_edit_is_seen_after_the_refresh(database: Database[Any]) -> None:
    clock = Clock()
    database["beacons"].delete_many({})
    database["beacons"].insert_one(BEACON)
    directory = Directory(Beacons(database), 30, clock)
    assert place(directory, "C2A628384B08") == Place("4", "Lobby B")
    database["beacons"].update_one({}, {"$set": {"location": "Lobby A"}})
    clock.now = 29
    assert place(directory, "C2A628384B08") == Place("4", "Lobby B")
    clock.now = 31
    assert place(directory, "C2A628384B08") == Place("4", "Lobby A")
    assert place(directory, "FFFFFFFFFFFF") is None


def test_a_loaded_file_is_seen_soon(database: Database[Any]) -> None:
    clock = Clock()
    directory = Directory(Beacons(database), 3600, clock)
    assert place(directory, "A" * 12) is None
    load(parse(f"mac,level,location,x,y\n{'A' * 12},1,Lobby A,,"), database)
    clock.now = CHECK_SECONDS
    assert place(directory, "A" * 12) == Place("1", "Lobby A")


def test_a_lost_database_leaves_the_old_copy() -> None:
    clock = Clock()
    beacons = Mock()  # a driver that fails on demand cannot be had from a real server
    beacons.read.return_value = [Beacon("A" * 12, "1", "Lobby A")]
    directory = Directory(beacons, 30, clock)
    assert place(directory, "A" * 12) == Place("1", "Lobby A")
    beacons.revision.side_effect = StoreUnavailable("gone")
    clock.now = 31
    assert place(directory, "A" * 12) == Place("1", "Lobby A")
    with pytest.raises(StoreUnavailable):
        Directory(beacons, 30, clock).current()


def test_threads_that_waited_for_a_failed_read_do_not_each_try_again() -> None:
    beacons = Mock()
    reading, fails = threading.Event(), threading.Event()

    def fail(*_: Any) -> None:
        reading.set()
        fails.wait(30)
        raise StoreUnavailable("gone")

    beacons.revision.side_effect = fail
    directory = Directory(beacons, 30)
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(directory.current)]
        assert reading.wait(30)
        asked += [threads.submit(directory.current) for _ in range(7)]
        eventually(lambda: len(directory._reads._waiting) == 7)
        fails.set()
    assert {type(future.exception()) for future in asked} == {StoreUnavailable}
    assert beacons.revision.call_count == 2  # one for the first, one for all the others


def test_after_a_write_whose_read_failed_the_next_reader_reads_again() -> None:
    clock = Clock()
    beacons = Mock()
    beacons.revision.return_value = 1
    beacons.read.return_value = [Beacon("A" * 12, "1", "Lobby A")]
    directory = Directory(beacons, 3600, clock)
    assert place(directory, "A" * 12) == Place("1", "Lobby A")
    beacons.revision.side_effect = StoreUnavailable("gone")
    directory.reload()
    beacons.revision.side_effect = None
    beacons.read.return_value = [Beacon("A" * 12, "1", "Lobby B")]
    eventually(lambda: not directory._reads.busy)  # while it reads, the old copy serves on
    assert place(directory, "A" * 12) == Place("1", "Lobby B")  # the clock stands still
