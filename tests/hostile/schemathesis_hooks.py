"""Hooks of schemathesis: what a JSON schema cannot say of a good request is not sent as one."""

import time
from collections.abc import Mapping
from typing import Any

import schemathesis

from ingest.api.detection_input import EARLIEST
from ingest.errors import ParameterError
from ingest.rules.request_parameters import MAX_UNIX_SECONDS, integer, moment

Given = Mapping[str, Any]


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
    items = body.get("detections", [body])
    return all(_can_be(one) for one in (query, *items) if isinstance(one, Mapping))


def _can_be(given: Given) -> bool:
    """Tell whether clock, calendar and what belongs together allow what is given."""
    names = [str(given.get(name, "x")).strip() for name in ("level", "location")]
    if not all(name and name.isprintable() for name in names):
        return False
    if (given.get("x") in (None, "")) != (given.get("y") in (None, "")):
        return False
    if given.get("after") and "limit" in given and "wait" in given:
        return False  # a cursor of /changes has a checksum
    try:
        first = _seconds(given, "start_time") or _seconds(given, "from")
        last = _seconds(given, "end_time") or _seconds(given, "to")
        _seconds(given, "since")
        _seconds(given, "timestamp")
    except ParameterError:
        return False
    return last is None or (first or 0) <= last


def _seconds(given: Given, name: str) -> int | None:
    """Return a time; ParameterError where the service's clock or the calendar has none such."""
    if given.get(name) in (None, ""):
        return None
    latest = int(time.time()) if name in ("timestamp", "from") else MAX_UNIX_SECONDS
    if name.endswith("_time") or "user_address" in given:
        return integer(given, name, 0, latest)
    return moment(given, name, EARLIEST if name == "timestamp" else 1, latest)
