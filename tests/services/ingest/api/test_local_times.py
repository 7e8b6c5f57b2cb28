"""Times as texts, many at once, are those that the standard library makes one by one."""

import random
import zoneinfo
from datetime import UTC, datetime

import pytest

from ingest.api.histories.local_times import in_utc_and_zone

# When clocks were changed, also within an hour of UTC; and when a zone was seconds from UTC.
CHANGES = {
    "Europe/Berlin": 1_792_890_000,
    "Australia/Lord_Howe": 1_775_314_800,
    "Asia/Kathmandu": 504_901_800,
    "Africa/Monrovia": 63_593_070,
    "America/Caracas": 1_462_084_200,
    "Asia/Singapore": 378_664_200,
}


@pytest.mark.parametrize(("zone", "change"), CHANGES.items())
def test_each_time_is_as_if_it_were_the_only_one(zone: str, change: int) -> None:
    known = zoneinfo.ZoneInfo(zone)
    steps = random.Random(zone)
    around = [change + offset for offset in (-86_400, -900, -1, 0, 1, 899, 900, 3600, 86_400)]
    some = [steps.randrange(0, 4_000_000_000) for _ in range(300)]
    dense = range(change - 3000, change + 3000, 7)
    for timestamps in (around, some, [*reversed(dense)], [0, 253_402_214_400]):
        expected = [
            (
                f"{datetime.fromtimestamp(at, UTC).isoformat()[:19]}Z",
                datetime.fromtimestamp(at, known).isoformat(),
            )
            for at in timestamps
        ]
        assert list(in_utc_and_zone(timestamps, known)) == expected
