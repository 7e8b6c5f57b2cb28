"""Many times as texts: what follows each other shares all but minutes and seconds."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo

# A zone's distance from UTC changes at a quarter of an hour, if at all, and is so many of them.
_QUARTER, _HOUR = 900, 3600
_MINUTES = [f"{second // 60:02}:{second % 60:02}" for second in range(_HOUR)]
_UP_TO_HOUR, _UP_TO_ZONE = len("2026-11-21T09:"), len("2026-11-21T09:30:00")


def in_utc_and_zone(timestamps: Iterable[int], zone: tzinfo) -> Iterator[tuple[str, str]]:
    """Yield unix seconds in ISO 8601, in UTC and in a zone, which tells its distance from UTC."""
    start = end = shift = 0
    utc_hour = local_hour = distance = ""
    for timestamp in timestamps:
        if not start <= timestamp < end:
            local = datetime.fromtimestamp(timestamp, zone)
            text = local.isoformat()
            local_hour, distance = text[:_UP_TO_HOUR], text[_UP_TO_ZONE:]
            utc_hour = datetime.fromtimestamp(timestamp, UTC).isoformat()[:_UP_TO_HOUR]
            shift = _seconds(local.utcoffset())
            start = timestamp - timestamp % _QUARTER
            end = start + _QUARTER
            at_ends = (datetime.fromtimestamp(at, zone).utcoffset() for at in (start, end - 1))
            if shift % _QUARTER or any(_seconds(at) != shift for at in at_ends):
                start, end = timestamp, timestamp + 1  # of a century ago
        minutes = _MINUTES[timestamp % _HOUR]
        local_minutes = _MINUTES[(timestamp + shift) % _HOUR]
        yield f"{utc_hour}{minutes}Z", f"{local_hour}{local_minutes}{distance}"


def _seconds(distance: timedelta | None) -> int:
    return int((distance or timedelta()).total_seconds())
