"""A second load tool with nothing in common with the first: threads and the standard library."""

import http.client
import threading
import time
from urllib.parse import urlsplit

from loadtests.figures import HTTP, Row

TIMEOUT_SECONDS = 30.0


def run(url: str, path: str, count: int, ramp_seconds: float) -> list[Row]:
    """Send `count` GETs evenly over the ramp, each from a thread and a connection of its own."""
    rows: list[Row] = []
    began = time.monotonic() + 0.1
    threads = []
    for number in range(count):
        due = began + number * ramp_seconds / count
        time.sleep(max(0.0, due - time.monotonic()))
        thread = threading.Thread(
            target=lambda due=due: rows.append(_get(url, path, due - began, began))
        )
        thread.start()
        threads.append(thread)
    for thread in threads:
        thread.join()
    return rows


def _get(url: str, path: str, due: float, began: float) -> Row:
    at = urlsplit(url)
    sent = time.monotonic()
    connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", path, headers={"Connection": "close"})
        response = connection.getresponse()
        status, size = response.status, len(response.read())
    except (OSError, http.client.HTTPException):
        status, size = 0, 0
    finally:
        connection.close()
    ms = (time.monotonic() - sent) * 1000
    return Row("", "", "", due, sent - began, ms, status, size, "" if status == 200 else HTTP)
