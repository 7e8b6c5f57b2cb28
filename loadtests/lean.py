"""A second load generator, of asyncio: it takes a third of the first one's CPU for a request.

It has nothing in common with the first but the statistics. It measures the service itself
(benchmark), and whether the first one's figures are right (check).
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from loadtests.figures import HTTP, VERIFICATION, Row

TIMEOUT_SECONDS = 60.0
REFUSED_SECONDS = 0.1  # until one that was refused tries again
LONGEST_BODY = 2**24  # bytes


class Response(NamedTuple):
    """What came back; the head in lower case."""

    status: int
    head: bytes
    body: bytes


class Exchange(NamedTuple):
    """A request, and what tells whether a response with status 200 is right."""

    request: bytes
    is_right: Callable[[Response], bool]
    name: str = ""  # of its row


Make = Callable[[int], Exchange]  # from the number of the client or request, just before it is sent


class Client:
    """One user with one request at a time, who keeps a connection as long as the server does."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def exchange(self, one: Exchange, began: float, due: float | None = None) -> Row:
        """Send, wait for the response, verify it; times as of `began` (monotonic seconds)."""
        sent = time.monotonic()
        response = Response(0, b"", b"")
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                response = await self._send(one.request)
        except (OSError, EOFError):
            self.close()
        times = (sent if due is None else due) - began, sent - began
        ms = (time.monotonic() - sent) * 1000
        error = HTTP
        if response.status == 200:
            error = "" if one.is_right(response) else VERIFICATION
        return Row("", "", one.name, *times, ms, response.status, len(response.body), error)

    async def _send(self, request: bytes) -> Response:
        if not self._streams:
            self._streams = await asyncio.open_connection(
                "127.0.0.1", self._port, limit=LONGEST_BODY
            )
        reader, writer = self._streams
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        at = head.index(b"content-length:") + 15
        body = await reader.readexactly(int(head[at : head.index(b"\r", at)]))
        if b"\r\nconnection: close" in head:  # as the old service does after each response
            self.close()
        return Response(int(head[9:12]), head, body)

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._streams:
            self._streams[1].close()
            self._streams = None


async def closed_loop(port: int, clients: int, seconds: float, make: Make) -> list[Row]:
    """Keep so many clients busy for so long, each waiting for its response."""
    rows: list[Row] = []
    began = time.monotonic()

    async def user(number: int) -> None:
        client = Client(port)
        while time.monotonic() < began + seconds:
            row = await client.exchange(make(number), began)
            rows.append(row)
            if not row.status:
                await asyncio.sleep(REFUSED_SECONDS)
        client.close()

    await asyncio.gather(*map(user, range(clients)))
    return rows


async def open_loop(ports: Sequence[int], count: int, seconds: float, make: Make) -> list[Row]:
    """Send evenly over the seconds to each server in turn, whether or not earlier ones returned."""
    idle: dict[int, list[Client]] = {port: [] for port in ports}
    began = time.monotonic()

    async def one(number: int) -> Row:
        due = began + number * seconds / count
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        clients = idle[ports[number % len(ports)]]
        client = clients.pop() if clients else Client(ports[number % len(ports)])
        row = await client.exchange(make(number), began, due)
        clients.append(client)
        return row

    rows = await asyncio.gather(*map(one, range(count)))
    for clients in idle.values():
        for client in clients:
            client.close()
    return rows
