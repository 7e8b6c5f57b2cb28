"""What runs beside a plan's requests: the mock HACS and open monitoring pages."""

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

import gevent

from loadtests.client import Answer, Api, WrongAnswer, query
from loadtests.histories import History
from loadtests.plans import ALL_TIME

HACS_SECONDS = 10.0
PAGE_SECONDS = 30.0

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
    path = query("/extractbeacon", staff_id=staff, **ALL_TIME)
    for due in _every(HACS_SECONDS, began):
        before = history.acknowledged

        def verify(answer: Answer, before: int = before) -> None:
            history.verify_live(answer, before)

        api.ask("hacs", path, verify, due=due, gzip=True)


def _page_data(api: Api) -> str:
    """Return what an open page fetches again and again: old and new differ."""
    new = "/monitoring/latest"
    return "/retrieveformonitoring" if api.call(new).status == 404 else new


def _show(api: Api, data: str, began: float) -> None:
    for due in _every(PAGE_SECONDS, began):
        api.ask("page", data, _verify_page, due=due, gzip=True)


def _verify_page(answer: Answer) -> None:
    try:
        found = json.loads(answer.body)
    except ValueError as error:
        raise WrongAnswer(f"the page's data are no JSON: {answer.body[:80]!r}") from error
    if not {"staff", "location"} & set(found):
        raise WrongAnswer(f"the page's data lack the staff: {answer.body[:80]!r}")


def _every(seconds: float, began: float) -> Iterator[float]:
    """Yield the due times of something periodic, each when it has come."""
    due = began
    while True:
        gevent.sleep(max(0.0, due - time.monotonic()))
        yield due
        due += seconds
