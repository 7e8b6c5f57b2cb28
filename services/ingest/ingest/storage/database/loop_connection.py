"""A connection on which the event loop speaks to MongoDB itself, one command after another.

The driver opens it and logs in. What the driver does around a command, sessions, retries, choices
of a server, costs more than the command; its asynchronous client costs the same
(docs/measurements.md, "The insert on the loop"). Only plain success is of use here: whatever else
happens is an error, after which the connection is closed, and the caller turns to the driver.

The messages: https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/#op_msg
"""

import asyncio
import socket
import struct
from typing import Any, cast

import bson
from bson.codec_options import CodecOptions
from bson.errors import BSONError

from ingest.errors import StoreUnavailable
from ingest.storage.database.driver import without_documents

# Length, number of the message, number of that which it answers, kind; flags, kind of the section.
_HEADER = struct.Struct("<iiiiIB")
_OP_MSG = 2013
# Of a reply: what is wrong with each of a hundred documents takes less.
MAX_REPLY_BYTES = 256 * 1024
# How much sooner the server is to give up than whoever waits for it.
_ROUND_TRIP_MS = 50

Reply = dict[str, Any]


class LoopConnection(asyncio.Protocol):
    """One connection; `connected` makes it."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._sent = 0  # number of the latest message
        self._waiting: asyncio.Future[bytes] | None = None  # who has sent it
        self._cluster_time: dict[str, Any] = {}

    @classmethod
    async def connected(cls, lent: socket.socket) -> "LoopConnection":
        """Return a connection over a socket on which somebody has logged in."""
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(cls, sock=lent)
        return connection

    @property
    def is_open(self) -> bool:
        """Tell whether a command can be sent, as far as that is known."""
        return self._transport is not None and not self._transport.is_closing()

    async def command(
        self, database: str, statements: dict[str, Any], options: CodecOptions[Any], seconds: float
    ) -> Reply:
        """Run a command; return the reply. One at a time.

        The server hears the latest time that it told, and when nobody waits any more.
        Raises StoreUnavailable: any of it may be done or not.
        """
        if self._waiting or self._transport is None or not self.is_open:
            raise StoreUnavailable("the connection of the event loop is closed")
        limit = {"maxTimeMS": max(1, int(seconds * 1000) - _ROUND_TRIP_MS), "$db": database}
        body = bson.encode(statements | limit | self._cluster_time, codec_options=options)
        self._sent = (self._sent + 1) & 0x7FFFFFFF
        head = _HEADER.pack(_HEADER.size + len(body), self._sent, 0, _OP_MSG, 0, 0)
        self._waiting = asyncio.get_running_loop().create_future()
        try:
            self._transport.write(head + body)
            async with asyncio.timeout(seconds):
                reply = _read(await self._waiting, options)
        except TimeoutError:
            self._break("the database has not answered in time")
            raise StoreUnavailable("the database has not answered in time") from None
        except StoreUnavailable as error:
            self._break(str(error))
            raise
        except BaseException:
            self._break("whoever waited has gone")
            raise
        finally:
            self._waiting = None
        if "$clusterTime" in reply:
            self._cluster_time = {"$clusterTime": reply["$clusterTime"]}
        return reply

    def close(self) -> None:
        """Close it."""
        if self._transport:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """End: whoever waits hears it."""
        self._break(f"the database closed the connection: {exc or 'without a word'}")

    def data_received(self, data: bytes) -> None:
        """Take what came; only the one reply that somebody waits for is right."""
        received = self._received
        received += data
        if self._waiting is None or self._waiting.done():
            self._break("the database answered what nobody asked")
            return
        if len(received) < _HEADER.size:
            return
        length, _, answered, kind, flags, section = _HEADER.unpack_from(received)
        right = answered == self._sent and (kind, flags, section) == (_OP_MSG, 0, 0)
        if not right or not _HEADER.size < length <= MAX_REPLY_BYTES or len(received) > length:
            self._break("the database answered what nobody asked")
        elif len(received) == length:
            self._received = bytearray()
            self._waiting.set_result(bytes(received[_HEADER.size :]))

    def _break(self, why: str) -> None:
        self.close()
        self._received = bytearray()
        if self._waiting and not self._waiting.done():
            self._waiting.set_exception(StoreUnavailable(why))


def _read(body: bytes, options: CodecOptions[Any]) -> Reply:
    """Return the reply. Raises StoreUnavailable: it cannot be read, or the command failed."""
    try:
        reply: Reply = bson.decode(body, options)
    except (BSONError, ValueError, OverflowError) as error:
        raise StoreUnavailable(f"an answer cannot be read: {error}") from None
    if reply.get("ok") != 1:
        raise StoreUnavailable(without_documents(str(reply.get("errmsg"))))
    return reply
