"""What runs beside a plan's requests: the mock HACS and open monitoring pages."""

from collections.abc import Iterator, Mapping
from typing import Any

import gevent

from loadtests.engine import endpoints
from loadtests.engine.client import CLOSE, GZIP, Api
from loadtests.engine.endpoints import History
from loadtests.engine.pace import wait_until

HACS_SECONDS = 10.0
PAGE_SECONDS = 30.0

HEADERS = CLOSE | GZIP

Greenlet = Any  # gevent's is generic in its stubs and not when it runs


def start(
    api: Api, histories: Mapping[int, History], hacs: tuple[int, ...], pages: int
) -> list[Greenlet]:
    """Start pollers that go on until they are killed."""
    began = api.began
    polls = [gevent.spawn(_poll, api, staff, histories[staff], began) for staff in hacs]
    data = _page_data(api) if pages else ""
    # Opened one after the other, as people do.
    opened = [began + PAGE_SECONDS / pages * number for number in range(pages)]
    return polls + [gevent.spawn(_show, api, data, at) for at in opened]


def _poll(api: Api, staff: int, history: History, began: float) -> None:
    for due in _every(HACS_SECONDS, began):
        history.read_live(api, "hacs", staff, HEADERS, due)


def _page_data(api: Api) -> str:
    """Return what an open page fetches again and again: old and new differ."""
    is_old = api.send(endpoints.MONITORING).status == 404
    return endpoints.OLD_MONITORING if is_old else endpoints.MONITORING


def _show(api: Api, data: str, began: float) -> None:
    for due in _every(PAGE_SECONDS, began):
        api.measure("page", data, endpoints.verify_page, None, HEADERS, due=due)


def _every(seconds: float, began: float) -> Iterator[float]:
    """Yield the due times of something periodic, each when it has come."""
    due = began
    while True:
        wait_until(due)
        yield due
        due += seconds
