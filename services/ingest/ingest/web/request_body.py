"""Reading the body of a request in the event loop: whole, in time, and not above the limit."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

# The whole of a body has to come in this time. The gateway sends one only when it has all of it.
BODY_SECONDS = 20

CHUNKED = b"transfer-encoding"

Headers = dict[bytes, bytes]
Receive = Callable[[], Awaitable[dict[str, Any]]]


class Body(NamedTuple):
    """A body, and its length in bytes, which is above the limit where it was not read whole."""

    data: bytes
    length: int


def declared_length(headers: Headers) -> int:
    """Return the length of the body as far as it is known; one without a length may be any."""
    return sys.maxsize if CHUNKED in headers else int(headers.get(b"content-length", 0))


def may_become_large(headers: Headers, large: int) -> bool:
    """Tell whether a body is, or inflates to, more than a large number of bytes."""
    return declared_length(headers) > large or b"content-encoding" in headers


async def read_body(headers: Headers, receive: Receive, limit: int) -> Body | None:
    """Return the body; None when it does not come in time.

    One above the limit is not read, or, without a declared length, a little further than it.
    """
    declared = declared_length(headers)
    if CHUNKED not in headers and not 0 < declared <= limit:
        return Body(b"", declared)
    data = b""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                chunk: bytes = message["body"]
                data += chunk
                if len(data) > limit or not message["more_body"]:
                    return Body(data, len(data) if CHUNKED in headers else declared)
    except TimeoutError:
        return None
