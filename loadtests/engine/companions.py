"""What runs beside a plan's requests: the mock HACS and open monitoring pages."""

from collections.abc import Callable, Mapping
from functools import partial
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
    polls = [partial(histories[one].read_live, api, "hacs", one, HEADERS) for one in hacs]
    found = [gevent.spawn(_repeat, HACS_SECONDS, api.began, poll) for poll in polls]
    if pages:
        # What an open page fetches again and again: old and new differ.
        is_old = api.send(endpoints.MONITORING).status == 404
        data = endpoints.OLD_MONITORING if is_old else endpoints.MONITORING
        show = partial(api.measure, "page", data, endpoints.verify_page, None, HEADERS)
        # Opened one after the other, as people do.
        opened = [api.began + PAGE_SECONDS / pages * number for number in range(pages)]
        found += [gevent.spawn(_repeat, PAGE_SECONDS, at, show) for at in opened]
    return found


def _repeat(seconds: float, due: float, request: Callable[..., object]) -> None:
    while True:
        wait_until(due)
        request(due=due)
        due += seconds
