"""For whom detections go to the spool while a shard does not answer."""

from collections.abc import Collection
from typing import cast

import pytest

from ingest.errors import StoreUnavailable
from ingest.storage.database.availability import ASKED_IN_TURN, Availability
from ingest.storage.database.client import Client
from ingest.storage.people.latest import Latest


class Database:
    """Two shards, of which one does not answer: `reachable_ids` are people of the other one."""

    def __init__(self, reachable_ids: set[int]) -> None:
        self.reachable_ids = reachable_ids
        self.noted: set[int] = set()
        self.too_slow = False  # for what asks both shards
        self.asked: list[int] = []
        both = (cast(Client, self), cast(Latest, self))
        self.availability = Availability(*both)
        self.availability.lost(StoreUnavailable("a write failed"))

    def answering(self, staff_ids: Collection[int], _: float) -> set[int]:
        if self.too_slow:
            raise StoreUnavailable("timed out")
        return self.reachable_ids & self.noted & {*staff_ids}

    def answers(self, staff_id: int, _: float) -> bool:
        self.asked.append(staff_id)
        return staff_id in self.reachable_ids

    def any_answers(self, _: float) -> bool:
        return not self.too_slow

    def ping(self, _: float) -> None:
        if self.too_slow:
            raise StoreUnavailable("timed out")

    def reachable(self, staff_ids: Collection[int]) -> set[int]:
        return {staff_id for staff_id in staff_ids if self.availability.reachable(staff_id)}

    def silent(self, staff_id: int) -> bool:
        try:
            self.availability.check_shard_of(staff_id)
        except StoreUnavailable:
            return True
        return False


@pytest.mark.parametrize("too_slow", [False, True])
@pytest.mark.parametrize("noted", [set(), {1, 2, 11}, {*range(20)}])
def test_only_those_of_the_dead_shard_wait_whoever_is_noted(
    noted: set[int], *, too_slow: bool
) -> None:
    database = Database(reachable_ids={*range(10)})
    database.noted, database.too_slow = noted, too_slow
    database.availability.ask_for({*range(20)})
    assert database.reachable(range(30)) == {*range(10)}
    assert [second for second in range(30) if database.silent(second)] == [*range(10, 20)]
    del database.asked[:]
    database.availability.ask_for({*range(20)})
    assert database.asked == []
    # One who answered before tells that the database is not away, however slow both shards are.
    database.too_slow = True
    assert not database.availability.everything_answers()
    assert not database.availability.away


def test_of_a_crowd_everybody_is_asked_for_in_the_end() -> None:
    crowd = {*range(2 * ASKED_IN_TURN + 2)}
    database = Database(reachable_ids={0, *range(ASKED_IN_TURN, ASKED_IN_TURN + 9)})
    rounds = 0
    while rounds == 0 or len(database.asked) < len(crowd):
        assert database.availability.somebody_is_back(), "the spool is gone through once more"
        database.availability.ask_for(crowd)
        rounds += 1
    assert rounds == 3
    assert database.reachable(crowd) == database.reachable_ids
    assert not database.availability.somebody_is_back()


def test_when_all_shards_answer_nobody_is_refused_for_his() -> None:
    database = Database(reachable_ids={1})
    database.availability.ask_for({1, 2})
    assert database.silent(2)
    assert database.availability.everything_answers()
    assert not database.silent(2)
