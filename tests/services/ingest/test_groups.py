"""What becomes of each detection of a group when a shard, the directory or the spool fails.

A real database fails so only now and then, and never in all the ways at once: the four that the
recorder works with are stand-ins here, which fail as they are told. The others of these tests
(test_recorder.py, tests/mongo/test_sharded.py) have real ones.
"""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from common.erasures import NOBODY
from ingest.errors import StoreUnavailable
from ingest.recording.outcome import Outcome, PartlyStored
from ingest.recording.recorder import GROUP, Recorder
from ingest.storage.detections.inserts import Stored
from ingest.storage.directory.directory import Place, Snapshot

STORED, DUPLICATE, QUEUED, REJECTED, UNAVAILABLE = (
    *(Outcome.STORED, Outcome.DUPLICATE, Outcome.QUEUED),
    *(Outcome.REJECTED, Outcome.UNAVAILABLE),
)
Document = dict[str, Any]


def one(name: int, staff_id: int = 1, level: str | None = "4", mac: str = "M") -> Document:
    return {"_id": name, "staff_id": staff_id, "level": level, "location": level, "mac": mac}


def directory(level: str, location: str) -> Snapshot:
    return Snapshot(1, "", [], {}, {"M": Place(level, location)})


class Site:
    """A recorder, and all that it works with."""

    def __init__(self) -> None:
        # The database: how it fails, by the `_id` of a document.
        self.repeated: set[int] = set()
        self.refused: set[int] = set()
        self.failed: set[int] = set()
        self.error: Exception | None = None
        self.stored: list[list[int]] = []
        # What is known of it.
        self.away = self.degraded = False
        self.answering: set[int] = set()
        self.lost_by: list[str] = []
        self.drain_wanted = threading.Event()
        # The directory, and the spool.
        self.snapshot: Snapshot | None = None
        self.directory_away = False
        self.read = 0
        self.room = 1000
        self.spooled: list[list[int]] = []
        self.queued, self.set_aside = 3, 4
        self.own = self
        self.recorder = Recorder(self, self, self, self, self, lambda: NOBODY, 60)  # type: ignore[arg-type]

    def check_reachable(self) -> None:
        if self.away:
            raise StoreUnavailable("away")

    def reachable(self, staff_id: int) -> bool:
        return staff_id in self.answering

    def lost(self, error: StoreUnavailable) -> None:
        self.lost_by.append(str(error))
        self.degraded = True

    def store(self, documents: list[Document]) -> Stored:
        if self.error:
            raise self.error
        self.stored.append([document["_id"] for document in documents])
        at = {document["_id"]: position for position, document in enumerate(documents)}
        failing = {at[name]: f"shard of {name}" for name in sorted(self.failed & at.keys())}
        refused = {at[name]: "its schema" for name in self.refused & at.keys()}
        return Stored({at[name] for name in self.repeated & at.keys()}, refused, failing)

    def cached(self) -> Snapshot | None:
        return self.snapshot

    def current(self) -> Snapshot:
        self.read += 1
        if self.directory_away:
            raise StoreUnavailable("no directory")
        return directory("6", "now")

    def append(self, documents: list[Document]) -> None:
        if len(documents) > self.room:
            raise StoreUnavailable("full")
        self.room -= len(documents)
        self.spooled.append([document["_id"] for document in documents])


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.recorder.close()


def test_each_request_learns_what_became_of_its_own(site: Site) -> None:
    site.repeated, site.refused = {2, 4}, {3}
    results = site.recorder.store([[one(1), one(2)], [], [one(3), one(4), one(5)]])
    assert results == [[STORED, DUPLICATE], [], [REJECTED, DUPLICATE, STORED]]
    assert site.stored == [[1, 2, 3, 4, 5]]  # in one command
    assert (site.spooled, site.lost_by) == ([], [])
    assert not site.drain_wanted.is_set()


def test_what_was_refused_is_told_in_the_log(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.refused = {2}
    site.recorder.record([one(1), one(2)])
    assert [record.getMessage() for record in caplog.records] == [
        "MongoDB refuses detection 2: its schema"
    ]


def test_while_the_database_is_away_all_of_it_waits_in_one_transaction(site: Site) -> None:
    site.away, site.snapshot = True, directory("5", "cached")
    requests = [[one(1, level=None), one(2)], [one(3, level=None, mac="?")]]
    assert site.recorder.store(requests) == [[QUEUED, QUEUED], [QUEUED]]
    assert (site.stored, site.spooled) == ([], [[1, 2, 3]])
    levels = [document["level"] for request in requests for document in request]
    assert levels == ["5", "4", "unknown"]  # of the cached directory; what has one keeps it
    assert site.drain_wanted.is_set()
    assert site.read == 0


def test_without_a_directory_places_are_found_when_it_is_stored(site: Site) -> None:
    site.away = True
    request = [one(1, level=None)]
    assert site.recorder.store([request]) == [[QUEUED]]
    assert request[0]["level"] is None


def test_a_database_that_goes_away_meanwhile_is_lost(site: Site) -> None:
    site.error = StoreUnavailable("gone")
    assert site.recorder.store([[one(1)]]) == [[QUEUED]]
    assert (site.spooled, site.lost_by) == ([[1]], ["gone"])


def test_a_spool_that_is_nearly_full_takes_the_requests_that_fit(site: Site) -> None:
    site.away, site.room = True, 2
    results = site.recorder.store([[one(1)], [one(2), one(3)], [one(4)], [one(5)]])
    assert [results[0], results[2]] == [[QUEUED], [QUEUED]]
    assert all(type(results[number]) is StoreUnavailable for number in (1, 3))
    assert site.spooled == [[1], [4]]
    assert site.drain_wanted.is_set()  # also when nothing was taken: there is something to drain
    with pytest.raises(StoreUnavailable, match="full"):
        site.recorder.record([one(6)])


def test_of_two_requests_the_one_that_fits_waits(site: Site) -> None:
    site.away, site.room = True, 1
    fits, too_large = site.recorder.store([[one(1)], [one(2), one(3)]])
    assert fits == [QUEUED]
    assert type(too_large) is StoreUnavailable


def test_a_large_request_of_which_nothing_is_stored_is_not_stored_in_part(site: Site) -> None:
    site.failed, site.room = set(range(300)), 0
    assert [type(result) for result in site.recorder.store([[one(n) for n in range(300)]])] == [
        StoreUnavailable
    ]


def test_what_one_shard_does_not_take_waits(site: Site) -> None:
    site.failed, site.refused = {2, 4}, {3}
    results = site.recorder.store([[one(1), one(2)], [one(3)], [one(4)], [one(5)]])
    assert results == [[STORED, QUEUED], [REJECTED], [QUEUED], [STORED]]
    assert site.spooled == [[2, 4]]
    assert site.lost_by == ["shard of 2"]


def test_with_a_full_spool_a_request_is_stored_in_part(site: Site) -> None:
    site.failed, site.room = {2, 3, 4, 6}, 0
    requests = [[one(1), one(2)], [one(3), one(4)], [one(5)], [one(6)]]
    partly, none, all_, alone = site.recorder.store(requests)
    assert isinstance(partly, PartlyStored)
    assert partly.outcomes == [STORED, UNAVAILABLE]
    assert type(none) is type(alone) is StoreUnavailable  # nothing of them was stored
    assert all_ == [STORED]


def test_while_a_shard_is_away_only_who_is_reachable_is_asked_for(site: Site) -> None:
    site.degraded, site.answering, site.snapshot = True, {7}, directory("5", "cached")
    documents = [one(1, 7, level=None), one(2, 8), one(3, 7)]
    assert site.recorder.commit_reachable(documents) == [STORED, UNAVAILABLE, STORED]
    assert (site.stored, documents[0]["level"], site.read) == ([[1, 3]], "5", 0)
    assert site.recorder.store([[one(4, 8)], [one(5, 7)]]) == [[QUEUED], [STORED]]
    site.stored.clear()
    assert site.recorder.commit_reachable([one(6, 8)]) == [UNAVAILABLE]
    assert site.stored == []  # nothing is asked for nobody
    site.snapshot = None  # all shards have a part of the directory
    assert site.recorder.commit_reachable([one(7, 7)]) == [UNAVAILABLE]


def test_places_are_looked_up_where_one_is_missing(site: Site) -> None:
    site.snapshot = directory("5", "cached")
    documents = [one(1, level=None), one(2), one(3, level=None, mac="?")]
    site.recorder.commit(documents)
    assert [document["level"] for document in documents] == ["6", "4", "unknown"]
    assert [document["location"] for document in documents] == ["now", "4", "unknown"]
    site.recorder.commit([one(4)])
    assert site.read == 1
    site.degraded, site.snapshot = True, None  # never read: then it has to be
    site.recorder.commit([one(5, level=None)])
    assert site.read == 2
    site.directory_away = True
    with pytest.raises(StoreUnavailable, match="no directory"):
        site.recorder.commit([one(6, level=None)])


def test_an_error_of_our_own_is_of_one_request_alone(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(dict[str, Any]):
        def __getitem__(self, name: str) -> Any:
            raise KeyError(name)

    results = site.recorder.store([[one(1)], [Broken()], [one(3)]])
    assert [results[0], results[2]] == [[STORED], [STORED]]
    assert isinstance(results[1], KeyError)
    assert [record.getMessage() for record in caplog.records] == [
        "3 requests are stored one by one"
    ]
    with pytest.raises(KeyError):
        site.recorder.record([Broken()])


def test_what_it_tells_of_the_spools(site: Site) -> None:
    assert (site.recorder.queued, site.recorder.set_aside) == (3, 4)


def test_a_group_is_of_detections_not_of_requests(site: Site) -> None:
    assert GROUP == 500
    assert site.recorder._batcher._limit == GROUP
    assert site.recorder._batcher._size([one(1), one(2)]) == 2
    assert site.recorder._batcher._gather is True
    assert site.recorder._pool._max_workers == 1
    site.recorder.close()
    with pytest.raises(StoreUnavailable):
        site.recorder.record([one(1)])
