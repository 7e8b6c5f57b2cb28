"""Histories as pieces in the order of time, for those who draw a way."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from ingest.histories.long_reads import PIECE
from ingest.rules.request_parameters import TimeRange
from ingest.storage.detections.detections import Detections
from ingest.storage.detections.states import State
from ingest.storage.places.times_by_place import TimesAt
from ingest.turns import turn

# How much time is read at once to begin with: somebody's day of work.
FIRST_SECONDS = 86_400


def oldest_first(
    detections: Detections, wanted: TimeRange, state: State | None
) -> Iterator[list[TimesAt]]:
    """Yield the detections of a range in pieces, the oldest piece first, by place in each.

    The database finds the newest of a time: so the time is read in steps of no more than a piece.
    """
    as_of, seconds = state and state.read_at, FIRST_SECONDS
    while wanted.start <= wanted.end:
        step = wanted._replace(end=min(wanted.start + seconds - 1, wanted.end))
        with turn():
            places = detections.times_by_place(step, PIECE, as_of)
        count = sum(len(place.timestamps) for place in places)
        if count < PIECE:
            yield places
            seconds *= 2 if count < PIECE // 4 else 1
        elif step.start < step.end:
            seconds = max(1, (step.end - step.start + 1) // 4)
            continue
        else:  # a second of a phone whose clock stands still: it has no bound
            rows = detections.list_between(step, as_of)
            while heard := Counter(islice(rows, PIECE)):
                yield [
                    TimesAt(level, location, [timestamp] * times)
                    for (timestamp, level, location), times in heard.items()
                ]
        wanted = wanted._replace(start=step.end + 1)
