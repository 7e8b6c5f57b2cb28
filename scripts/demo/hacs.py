"""The mock HACS: pulls what is new every 10 s, and prints each detection as a line of JSON.

    ./scripts/hacs                        # the histories of staff 0 and 2, as the source's HACS
    ./scripts/hacs --changes              # everybody, by the change feed: one request for all

An example for the developers of a HACS: it needs nothing but Python. Its file (--state) has what
was printed, or the feed's cursor: started again, it goes on where it was. The file is written after
the lines are out, so a crash between the two repeats lines, and never leaves one out. With
WAYMARK_TOKEN in the environment it shows that token.
"""

import argparse
import collections
import http.client
import json
import os
import signal
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

INTERVAL_SECONDS = 10.0
TIMEOUT_SECONDS = 35.0  # longer than the gateway's
DAY_SECONDS = 86400
FOR_EVER = 4102444800  # unix seconds
LINES = 1000  # of the change feed at once
STATE = Path(__file__).resolve().parents[2] / "data" / "hacs.json"
NOT_MODIFIED, GONE = 304, 410

State = dict[str, Any]  # what the file holds
Row = tuple[int, str, str]  # of a history: timestamp, level, location
Decoded = TypeVar("Decoded")


class Gateway:
    """Reads addresses of one gateway."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._etags: dict[str, str] = {}
        is_here = urllib.parse.urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")
        proxies = [urllib.request.ProxyHandler({})] if is_here else []
        self._opener = urllib.request.build_opener(*proxies)
        if token := os.environ.get("WAYMARK_TOKEN"):
            self._opener.addheaders.append(("Authorization", f"Bearer {token}"))

    def forget(self) -> None:
        """Have everything sent again, also what did not change: it may not have been printed."""
        self._etags.clear()

    def get(
        self, path: str, decode: Callable[[bytes], Decoded], **parameters: object
    ) -> Decoded | None:
        """Return what a body holds, None of what did not change since the last time.

        Raises HTTPError of any other status, OSError without an answer, ValueError of a wrong one.
        """
        address = f"{self._url}{path}?{urllib.parse.urlencode(parameters)}"
        known = {"If-None-Match": self._etags[address]} if address in self._etags else {}
        asked = urllib.request.Request(address, headers=known)
        try:
            with self._opener.open(asked, timeout=TIMEOUT_SECONDS) as response:
                decoded = decode(response.read())
        except urllib.error.HTTPError as error:
            if error.code == NOT_MODIFIED:
                return None
            raise
        except http.client.HTTPException as error:  # half an answer
            raise OSError(f"{type(error).__name__}: {error}") from error
        if etag := response.headers.get("ETag"):
            self._etags[address] = etag
        return decoded


def histories(gateway: Gateway, state: State, staff: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the detections of some staff that were not there the last time.

    A phone sends what it heard in a dead zone later: so each pull reads since yesterday's begin,
    and compares. The address is the same all day, so an unchanged history is a 304 without a body.
    """
    begin = (int(time.time()) // DAY_SECONDS - 1) * DAY_SECONDS
    seen = state.setdefault("seen", {})
    for staff_id in staff:
        asked = {"staff_id": staff_id, "start_time": begin, "end_time": FOR_EVER}
        rows = gateway.get("/extractbeacon", _rows, **asked)
        if rows is None:
            continue
        known = collections.Counter(tuple(row) for row in seen.get(staff_id, []))
        new: collections.Counter[Row] = collections.Counter(rows) - known
        for timestamp, level, location in sorted(new.elements()):
            named = {"level": level, "location": location}
            yield {"staff_id": staff_id, "timestamp": timestamp, **named}
        seen[staff_id] = rows


def _rows(body: bytes) -> list[Row]:
    location = json.loads(body)["location"]
    return [(row["timestamp"], row["level"], row["location"]) for row in location]


def changes(gateway: Gateway, state: State) -> Iterator[dict[str, Any]]:
    """Yield what the change feed has since the cursor; without one it begins now."""
    while True:
        after = {"after": state["cursor"]} if "cursor" in state else {}
        try:
            lines = gateway.get("/api/v1/changes", _lines, limit=LINES, **after) or []
        except urllib.error.HTTPError as error:
            if error.code != GONE or not after:
                raise
            _say("the feed no longer reaches back to the cursor: it begins again now. Fill the gap")
            _say("from /api/v1/staff/STAFF_ID/detections, by id")
            del state["cursor"]
            continue
        if not lines or "next" not in lines[-1]:
            raise OSError("the answer was cut off")  # the same cursor again, next time
        yield from lines[:-1]
        state["cursor"] = lines[-1]["next"]
        if len(lines) <= LINES:
            return


def _lines(body: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in body.splitlines()]


def pull(gateway: Gateway, file: Path, source: Callable[[Gateway, State], Any], url: str) -> None:
    """Print what is new, then keep how far it is; what fails is said, and pulled again later."""
    state = _read(file, url)
    try:
        for detection in source(gateway, state):
            print(json.dumps(detection), flush=True)
    except BrokenPipeError:  # nobody reads what we print
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        gateway.forget()
        _say(f"{url}: {type(error).__name__}: {error}")
    _write(file, state)


def pause(due: float, now: float) -> tuple[float, float]:
    """Return how long to sleep, and when the next pull is due; turns that were missed are left."""
    due = max(due + INTERVAL_SECONDS, now)
    return due - now, due


def _read(file: Path, url: str) -> State:
    try:
        state = json.loads(file.read_text())
    except FileNotFoundError:
        state = {}
    except ValueError:
        state = None
    if not isinstance(state, dict):
        _say(f"{file} is damaged: it begins anew")
        state = {}
    return state if state.get("url") == url else {"url": url}


def _write(file: Path, state: State) -> None:
    """Keep the state whole, also when the machine stops now."""
    new = file.with_suffix(".new")
    with new.open("w") as text:
        json.dump(state, text)
        text.flush()
        os.fsync(text.fileno())
    new.replace(file)


def _say(text: str) -> None:
    print(f"hacs: {text}", file=sys.stderr, flush=True)


def main() -> None:
    """Pull until the process is stopped."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="./scripts/hacs", description=__doc__, formatter_class=raw
    )
    parser.add_argument("url", nargs="?", default="http://127.0.0.1:8080", help="the gateway's")
    parser.add_argument("--staff", default="0,2", help="whose histories (0,2)")
    parser.add_argument("--changes", action="store_true", help="everybody, by the change feed")
    parser.add_argument("--state", type=Path, default=STATE, help="its file (data/hacs.json)")
    parser.add_argument("--pulls", type=int, default=0, help="end after so many (0: never)")
    options = parser.parse_args()
    staff = [staff_id.strip() for staff_id in options.staff.split(",")]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    gateway, due, pulls = Gateway(options.url), time.monotonic(), 0

    def source(gateway: Gateway, state: State) -> Iterator[dict[str, Any]]:
        return changes(gateway, state) if options.changes else histories(gateway, state, staff)

    try:
        options.state.parent.mkdir(parents=True, exist_ok=True)
        while True:
            pull(gateway, options.state, source, options.url)
            pulls += 1
            if pulls == options.pulls:
                return
            seconds, due = pause(due, time.monotonic())
            time.sleep(seconds)
    except KeyboardInterrupt:
        return
    except OSError as error:
        sys.exit(f"hacs: {error}")


if __name__ == "__main__":
    main()
