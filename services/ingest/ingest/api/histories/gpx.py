"""A history as GPX 1.1: a track with a segment for each stay, in the order of time."""

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC
from functools import lru_cache
from html import escape
from itertools import islice

from flask import Response

from ingest.api.histories.downloads import (
    LINES_AT_ONCE,
    SHARED_TEXTS,
    Subject,
    attachment,
    begun,
    of_any_length,
)
from ingest.api.histories.local_times import in_utc_and_zone
from ingest.assembly import get_context
from ingest.histories.oldest_first import oldest_first
from ingest.storage.detections.states import State
from ingest.storage.directory.directory import Place, Snapshot
from ingest.storage.places.times_by_place import TimesAt

KIND, MEDIA_TYPE = "gpx", "application/gpx+xml"
# A silence that ends a stay, as on the page and in /visits.
SILENCE_SECONDS = 300
_NOT_OF_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BEGIN = """<?xml version="1.0" encoding="UTF-8"?>
<gpx xmlns="http://www.topografix.com/GPX/1/1" version="1.1" creator="Waymark">
<metadata><desc>Each segment is a stay: its first point has the name of the location and the level.\
 What was heard of beacons without a position is not here; the end says how much.</desc></metadata>
<trk><name>{name}</name>
<trkseg>
"""
_NEXT = "</trkseg><trkseg>\n"
_END = "</trkseg></trk>\n<!-- without a position, and so not here: {} detections -->\n</gpx>\n"

Degrees = tuple[float, float]  # latitude and longitude
DegreesOf = Callable[[str, str], Degrees | None]  # of a level and a location


def download(subject: Subject, state: State | None, directory: Snapshot) -> Response:
    """Answer the file; its length costs no memory. Raises StoreUnavailable, Busy."""
    context = get_context()
    positions, origin = directory.positions(), context.plan_origin

    def degrees_of(level: str, location: str) -> Degrees | None:
        position = positions.get(Place(level, location))
        return origin.degrees(position) if origin and position else None

    pieces = oldest_first(context.histories.detections, subject.range, state)
    name = ", ".join(filter(None, subject.names)) or f"Staff {subject.range.staff_id}"
    chunks = begun(of_any_length(file(name, pieces, degrees_of)))
    return attachment(chunks, subject.file_name(KIND), MEDIA_TYPE)


def file(name: str, pieces: Iterable[list[TimesAt]], degrees_of: DegreesOf) -> Iterator[bytes]:
    """Yield the file of detections that come the oldest first, by place in each piece."""
    yield _BEGIN.format(name=_text(name)).encode()
    lines = _lines(pieces, degrees_of)
    while some := "".join(islice(lines, LINES_AT_ONCE)):
        yield some.encode()


def _lines(pieces: Iterable[list[TimesAt]], degrees_of: DegreesOf) -> Iterator[str]:
    """Yield the points, each with the end of the stay before where another begins; then the end."""

    @lru_cache(SHARED_TEXTS)
    def shared(level: str, location: str) -> tuple[str, str] | None:
        """Return the first point of a stay and the others, where `%s` is the time."""
        if not (degrees := degrees_of(level, location)):
            return None
        point = '<trkpt lat="{:.7f}" lon="{:.7f}"><time>%s</time>'.format(*degrees)
        place = f"<name>{_text(location)}</name><desc>level {_text(level)}</desc>"
        return f"{point}{place.replace('%', '%%')}</trkpt>\n", f"{point}</trkpt>\n"

    before: tuple[str, str] | None = None
    last, left_out, is_open = 0, 0, False
    for places in pieces:
        count = len(places)
        keys = sorted(
            timestamp * count + number
            for number, place in enumerate(places)
            for timestamp in place.timestamps
        )
        names = [(place.level, place.location) for place in places]
        points = [shared(*name) for name in names]
        times = in_utc_and_zone([key // count for key in keys], UTC)
        for key, (time, _) in zip(keys, times, strict=True):
            timestamp, number = divmod(key, count)
            is_same = names[number] == before and timestamp - last <= SILENCE_SECONDS
            before, last = names[number], timestamp
            if (point := points[number]) is None:
                left_out += 1
            elif is_same:
                yield point[1] % time
            else:
                yield (_NEXT if is_open else "") + point[0] % time
                is_open = True
    yield _END.format(left_out)


def _text(value: str) -> str:
    """Return a text of XML; what it cannot have becomes the mark of a lost character."""
    # Not xml.sax.saxutils: it brings 0.6 MiB of modules.
    return escape(_NOT_OF_XML.sub("\ufffd", value), quote=False).replace("\r", "&#13;")
