"""Hooks of schemathesis: what a JSON schema cannot say of a good request is not sent as one."""

import time
from collections.abc import Mapping
from typing import Any

import schemathesis

from ingest.api.places.visits import MAX_DAYS
from ingest.errors import ParameterError
from ingest.rules.request_parameters import EARLIEST, MAX_UNIX_SECONDS, integer, moment

TIMES = ("start_time", "end_time", "from", "to", "since", "timestamp")
NAMES = ("level", "location", "label")

Parameters = Mapping[str, Any]


@schemathesis.hook
def filter_case(_: Any, case: Any) -> bool:
    """Tell whether the document can judge a case, and nobody has to wait for it."""
    body = case.body if isinstance(case.body, Mapping) else {}
    query = case.query or {}
    if str(query.get("wait", 0)) not in ("0", "") or query.get("correct_past") in ("1", "true"):
        return False
    if case.meta and case.meta.generation.mode.is_negative:
        # A bad item of a batch is answered in its result: the batch is no bad request.
        return not isinstance(body.get("detections"), list)
    if case.media_type != "application/json" and None in body.values():
        return False  # a form has no null
    if case.operation.path.endswith("/changes") and query.get("after"):
        return False  # a cursor has a checksum
    if case.operation.path.endswith("/visits") and not _is_short(query):
        return False
    items = body.get("detections", [body])
    return all(_can_be(part) for part in (query, *items) if isinstance(part, Mapping))


def _is_short(query: Parameters) -> bool:
    try:
        first, last = (moment(query, name, 0, MAX_UNIX_SECONDS) for name in ("from", "to"))
    except ParameterError:
        return False
    return last - first <= MAX_DAYS * 86_400


def _can_be(parameters: Parameters) -> bool:
    """Tell whether clock, calendar and what belongs together allow what is given."""
    if parameters.get("raw") or (
        "staff_id" in parameters and "rssi" in parameters and not parameters.get("mac")
    ):
        return False  # hexadecimal digits are mostly no advertisement, which alone stands for a mac
    names = [str(parameters.get(name, "x")).strip() for name in NAMES]
    if not all(name and name.isprintable() for name in names):
        return False
    if (parameters.get("x") in (None, "")) != (parameters.get("y") in (None, "")):
        return False
    try:
        times = {name: _seconds(parameters, name) for name in TIMES}
    except ParameterError:
        return False
    bounds = [(times["start_time"], times["end_time"]), (times["from"], times["to"])]
    return all(None in (first, last) or (first or 0) <= (last or 0) for first, last in bounds)


def _seconds(parameters: Parameters, name: str) -> int | None:
    """Return a time; ParameterError where the service's clock or the calendar has none such."""
    if parameters.get(name) in (None, ""):
        return None
    latest = int(time.time()) if name in ("timestamp", "from") else MAX_UNIX_SECONDS
    if name.endswith("_time") or "user_address" in parameters:
        return integer(parameters, name, EARLIEST if name == "timestamp" else 0, latest)
    return moment(parameters, name, EARLIEST if name == "timestamp" else 1, latest)
