"""The connection of the event loop against servers that are broken, slow, or lie."""

import asyncio
import socket
import struct
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import bson
import pytest
from bson import Timestamp
from bson.codec_options import DEFAULT_CODEC_OPTIONS

from ingest.errors import StoreUnavailable
from ingest.storage.database.loop_connection import MAX_REPLY_BYTES, LoopConnection

HEADER = struct.Struct("<iiiiIB")
OP_MSG = 2013
FINE = {"n": 1, "ok": 1.0}
# The main thread may have the loop of a browser.
ELSEWHERE = ThreadPoolExecutor(1)
SECONDS = 20.0  # a busy machine is slow, too

# What a server sends when it was asked with that number; None: it hangs up.
Answer = Callable[[int], bytes | None]


def message(
    body: bytes, answers: int, kind: int = OP_MSG, flags: int = 0, section: int = 0
) -> bytes:
    return HEADER.pack(HEADER.size + len(body), 7, answers, kind, flags, section) + body


def fine(number: int) -> bytes:
    return message(bson.encode(FINE), number)


class Server:
    """The other end of a connection."""

    def __init__(self, end: socket.socket) -> None:
        end.settimeout(0)
        self._end = end
        self.asked: list[dict[str, Any]] = []

    async def answer(self, answer: Answer, slice_bytes: int = 1 << 30) -> None:
        loop = asyncio.get_running_loop()
        received = b""
        while len(received) < 4 or len(received) < struct.unpack("<i", received[:4])[0]:
            received += await loop.sock_recv(self._end, 65536)
        self.asked.append(bson.decode(received[HEADER.size :]))
        await self.send(answer(HEADER.unpack_from(received)[1]), slice_bytes)

    async def send(self, data: bytes | None, slice_bytes: int = 1 << 30) -> None:
        loop = asyncio.get_running_loop()
        for first in range(0, len(data or b""), slice_bytes):
            await loop.sock_sendall(self._end, (data or b"")[first : first + slice_bytes])
            await asyncio.sleep(0)
        if data is None:
            self._end.close()


def connected(work: Callable[[LoopConnection, Server], Awaitable[None]]) -> None:
    """Run work with a connection, and with the server at its other end."""

    async def run() -> None:
        ours, theirs = socket.socketpair()
        ours.settimeout(0)
        with theirs:
            connection = await LoopConnection.connected(ours)
            try:
                await work(connection, Server(theirs))
            finally:
                connection.close()

    ELSEWHERE.submit(asyncio.run, run()).result()


async def asked(
    connection: LoopConnection, server: Server, answer: Answer = fine, slice_bytes: int = 1 << 30
) -> dict[str, Any]:
    """Send a command, and have the server answer it."""
    both = asyncio.gather(
        connection.command("ICT3102", {"insert": "staff"}, DEFAULT_CODEC_OPTIONS, SECONDS),
        server.answer(answer, slice_bytes),
    )
    return (await both)[0]


@pytest.mark.parametrize("slice_bytes", [1, 3, 20, 1 << 30])
def test_an_answer_may_come_in_any_pieces(slice_bytes: int) -> None:
    async def work(connection: LoopConnection, server: Server) -> None:
        for _ in range(3):
            assert await asked(connection, server, slice_bytes=slice_bytes) == FINE
        assert connection.is_open

    connected(work)


def test_a_command_says_where_until_when_and_the_time_that_was_told() -> None:
    told = {"clusterTime": Timestamp(5, 6), "signature": {"hash": b"h", "keyId": 1}}
    reply = FINE | {"$clusterTime": told}

    async def work(connection: LoopConnection, server: Server) -> None:
        await asked(connection, server, lambda number: message(bson.encode(reply), number))
        await asked(connection, server)
        first, second = server.asked
        assert next(iter(first)) == "insert"
        assert first["$db"] == "ICT3102"
        assert 0 < first["maxTimeMS"] < SECONDS * 1000
        assert "$clusterTime" not in first
        assert second["$clusterTime"] == told

    connected(work)


WRONG: dict[str, Answer] = {
    "hangs up": lambda _: None,
    "another number": lambda number: fine(number + 1),
    "another kind": lambda number: message(bson.encode(FINE), number, kind=1),
    "more to come": lambda number: message(bson.encode(FINE), number, flags=2),
    "a checksum": lambda number: message(bson.encode(FINE), number, flags=1),
    "another section": lambda number: message(bson.encode(FINE), number, section=1),
    "no length": lambda number: HEADER.pack(0, 7, number, OP_MSG, 0, 0),
    "a negative length": lambda number: HEADER.pack(-1, 7, number, OP_MSG, 0, 0),
    "a header alone": lambda number: HEADER.pack(HEADER.size, 7, number, OP_MSG, 0, 0),
    "too long": lambda number: HEADER.pack(MAX_REPLY_BYTES + 1, 7, number, OP_MSG, 0, 0),
    "two answers": lambda number: fine(number) + fine(number),
    "garbage": lambda number: message(b"\xff" * 40, number),
    "an empty document": lambda number: message(bson.encode({}), number),
    "not ok": lambda number: message(bson.encode({"ok": 0.0, "errmsg": "not primary"}), number),
    "an answer in HTTP": lambda _: b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_answer_is_an_error_and_the_end(what: str) -> None:
    async def work(connection: LoopConnection, server: Server) -> None:
        with pytest.raises(StoreUnavailable):
            await asked(connection, server, WRONG[what])
        assert not connection.is_open
        with pytest.raises(StoreUnavailable, match="closed"):
            await connection.command("ICT3102", {"ping": 1}, DEFAULT_CODEC_OPTIONS, SECONDS)

    connected(work)


def test_half_an_answer_is_none() -> None:
    async def work(connection: LoopConnection, server: Server) -> None:
        async def half() -> None:
            await server.answer(lambda number: fine(number)[:-3])
            await server.send(None)

        command = connection.command("ICT3102", {"ping": 1}, DEFAULT_CODEC_OPTIONS, SECONDS)
        with pytest.raises(StoreUnavailable):
            await asyncio.gather(command, half())
        assert not connection.is_open

    connected(work)


def test_who_does_not_answer_in_time_is_not_asked_again() -> None:
    async def work(connection: LoopConnection, server: Server) -> None:
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match="in time"):
            await connection.command("ICT3102", {"ping": 1}, DEFAULT_CODEC_OPTIONS, 0.2)
        assert 0.2 <= time.monotonic() - began < SECONDS
        assert not connection.is_open  # what comes late would be taken for the next answer

    connected(work)


@pytest.mark.parametrize("data", [fine(0), b"\0", b"\0" * 100], ids=["answer", "byte", "zeros"])
def test_who_speaks_unasked_is_left(data: bytes) -> None:
    async def work(connection: LoopConnection, server: Server) -> None:
        await server.send(data)
        await server.send(None)
        for _ in range(1000):
            if not connection.is_open:
                break
            await asyncio.sleep(0.01)
        assert not connection.is_open

    connected(work)


def test_an_error_quotes_no_document() -> None:
    error = {"ok": 0.0, "errmsg": "E11000 duplicate key { staff_id: 7 }"}

    async def work(connection: LoopConnection, server: Server) -> None:
        with pytest.raises(StoreUnavailable) as raised:
            await asked(connection, server, lambda number: message(bson.encode(error), number))
        assert "staff_id" not in str(raised.value)

    connected(work)


def test_two_commands_at_once_are_refused_and_harm_nothing() -> None:
    async def work(connection: LoopConnection, server: Server) -> None:
        first = asyncio.ensure_future(
            connection.command("ICT3102", {"ping": 1}, DEFAULT_CODEC_OPTIONS, SECONDS)
        )
        await asyncio.sleep(0)
        with pytest.raises(StoreUnavailable):
            await connection.command("ICT3102", {"ping": 1}, DEFAULT_CODEC_OPTIONS, SECONDS)
        await server.answer(fine)
        assert await first == FINE

    connected(work)
