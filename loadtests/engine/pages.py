"""What an open monitoring page reads, of either architecture."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import gevent

from loadtests.engine import endpoints
from loadtests.engine.client import CLOSE, GZIP, Api
from loadtests.engine.pace import periodic

HEADERS = CLOSE | GZIP
# Address and seconds between two reads: as the screen Live does, and as the old page did.
NEW = {
    "/monitoring/api/staff": 5.0,
    "/monitoring/api/beacons": 60.0,
    "/monitoring/api/people": 60.0,
}
OLD: Mapping[str, float] = {"/retrieveformonitoring": 30}


def reads_of(api: Api) -> Mapping[str, float]:
    """Return what a page of this server reads, its people first, and how often."""
    return OLD if api.send(next(iter(NEW))).status == 404 else NEW


class Source:
    """One address that a page reads again and again, conditionally where there is an ETag."""

    def __init__(self, api: Api, address: str) -> None:
        self._api, self._address = api, address
        self._held: dict[str, str] = {}

    def read(self, name: str = "page", due: float | None = None) -> None:
        """Read it once; `due` as in Api.measure."""
        headers, good = HEADERS | self._held, (200, 304)
        verify = endpoints.verify_page
        response = self._api.measure(name, self._address, verify, None, headers, due=due, good=good)
        if etag := response.headers.get("etag"):
            self._held = {"If-None-Match": etag}


def open_pages(
    api: Api, reads: Mapping[str, float], count: int, began: float, opened_in: float
) -> list[Any]:
    """Open so many pages evenly over some seconds; return the greenlets, which are to be killed."""
    return [
        gevent.spawn(periodic, seconds, at, partial(Source(api, address).read, "page"))
        for at in (began + opened_in / count * number for number in range(count))
        for address, seconds in reads.items()
    ]
