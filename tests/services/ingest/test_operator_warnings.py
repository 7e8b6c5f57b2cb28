"""What an operator has to see to: clocks, disks, and a database that is another one."""

import time
from pathlib import Path

import pytest

from ingest.errors import StoreUnavailable
from ingest.recording.operator_warnings import KNOWN_FILE, OperatorWarnings
from ingest.recording.spool import Spool
from ingest.recording.steady_clock import SteadyClock, Witnesses
from ingest.storage.database.data_name import DataName

DAY = 86_400
NAMES = [DataName(f"{seconds:08x}{7:016x}") for seconds in (1_700_000_000, 1_800_000_000)]


class Site:
    """All that is looked at, with a database that has any name."""

    def __init__(self, folder: Path, limit: int = 10) -> None:
        self.name: DataName | None = None
        self.away = False
        self.clock = SteadyClock()
        self.spool = Spool(folder / "1.db", limit)
        self.warnings = OperatorWarnings(self.clock, self.spool, folder, self.read_name)

    def read_name(self) -> DataName | None:
        if self.away:
            raise StoreUnavailable("away")
        return self.name

    def said(self) -> list[str]:
        self.warnings.look()
        return [what for what, _ in self.warnings.current]


def test_a_database_that_is_a_new_one_is_told_until_the_old_one_is_back(tmp_path: Path) -> None:
    site = Site(tmp_path)
    assert site.said() == []  # of an older release it has no name
    site.name = NAMES[0]
    assert site.said() == []
    site.name, lost = NAMES[1], ["The database is a new one, and not that which was here"]
    assert site.said() == lost
    assert "It was made at 2027-01-15 08:00 UTC" in site.warnings.current[0].todo
    again = Site(tmp_path)  # after a restart it is told, too
    again.name = NAMES[1]
    assert again.said() == lost
    again.away = True
    assert again.said() == []
    again.away, again.name = False, NAMES[0]  # a backup was restored
    assert again.said() == []
    again.name = NAMES[1]
    assert again.said() == lost
    (tmp_path / KNOWN_FILE).unlink()  # it is meant
    assert again.said() == []
    again.name = NAMES[0]  # into a new stack a backup is restored, of an older one
    assert again.said() == []


@pytest.mark.parametrize("damaged", [b"", b"\xff\xfe", b"not a name"])
def test_a_damaged_file_of_the_name_is_written_anew(tmp_path: Path, damaged: bytes) -> None:
    (tmp_path / KNOWN_FILE).write_bytes(damaged)
    site = Site(tmp_path)
    site.name = NAMES[1]
    assert site.said() == []
    assert (tmp_path / KNOWN_FILE).read_text() == NAMES[1].text


def test_a_spool_without_room_is_told(tmp_path: Path) -> None:
    assert Site(tmp_path, limit=0).said() == ["The spool is full"]
    more_than_any_disk = 10**16
    said = ["The disk of the spools is nearly full"]
    assert Site(tmp_path, limit=more_than_any_disk).said() == said


def test_what_is_new_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    site = Site(tmp_path, limit=0)
    site.said()
    site.said()
    assert len([line for line in caplog.messages if "The spool is full. Phones" in line]) == 1


@pytest.mark.parametrize(
    ("skews", "said"),
    [
        ([4 * DAY] * 3, "is 4 days ahead of the clocks of most phones"),
        ([-7200, -7200, -7300, 0, 5], "is 2 hours behind the clocks of most phones"),
        ([4 * DAY] * 2, ""),  # two may be wrong
        ([4 * DAY] * 3 + [0] * 3, ""),  # so may be half
        ([3600, 3600, -3600, -3600], ""),  # they do not say the same
        ([200] * 9, ""),
    ],
)
def test_most_phones_are_believed_rather_than_this_machine(skews: list[int], said: str) -> None:
    asked: list[int] = []

    def phones(since: int) -> list[int]:
        asked.append(since)
        return skews

    witnesses = Witnesses(lambda: int(time.time()), lambda _: False, phones)
    clock = SteadyClock(witnesses)
    assert clock.doubt() == clock.warning() == said
    assert not clock.is_right(lambda: True, "deleted") or not said
    assert abs(time.time() - 900 - asked[0]) < 5


def test_without_the_database_only_what_was_known_speaks_against_a_clock() -> None:
    def away() -> int:
        raise StoreUnavailable("away")

    clock = SteadyClock(Witnesses(away, lambda _: False, lambda _: []))
    assert clock.warning() == ""
    with pytest.raises(StoreUnavailable):
        clock.is_right(lambda: True, "deleted")
