"""Storing detections from the event loop: nobody waits for a thread while all goes well."""

import asyncio
import logging
import socket
from typing import NamedTuple

from common import revisions, schema
from common.schema import Collection
from ingest.errors import StoreUnavailable
from ingest.storage.database.client import Address, Client
from ingest.storage.database.driver import DURABLY, Written, written
from ingest.storage.database.loop_connection import LoopConnection
from ingest.storage.detections.documents import Document
from ingest.storage.detections.inserts import Inserts, stamped
from ingest.storage.detections.stamps import Clock

log = logging.getLogger(__name__)

# How many detections are stored from the loop at once: it writes and reads them itself.
LARGEST = 100
# What opening a connection may take: the recorder's thread has nothing else to do meanwhile.
LEND_SECONDS = 0.3


class Sent(NamedTuple):
    """What MongoDB said of documents that were sent, and whether their stamps are close."""

    written: Written
    is_close: bool

    @property
    def is_plain(self) -> bool:
        """Tell whether all are stored, and there is no more to do."""
        return self.is_close and not self.written.failed


class LoopInserts:
    """Owns the connection of the event loop, in which all but `lend` runs."""

    def __init__(self, client: Client, inserts: Inserts) -> None:
        self._client = client
        self._inserts = inserts
        self._staff = client.staff
        self._clock = Clock()
        self._connection: LoopConnection | None = None
        self._address: Address = ("", None)
        self._can_be_lent = True
        self._opening: asyncio.Task[None] | None = None  # a loop alone would let go of it

    def can_take(self, documents: list[Document]) -> bool:
        """Tell whether `send` may be tried."""
        return (
            len(documents) <= LARGEST
            and self._is_connected()
            and self._inserts.are_recent(documents)
        )

    def _is_connected(self) -> bool:
        """Tell whether there is a connection, to whom the driver would send as well."""
        connection = self._connection
        return (
            connection is not None
            and connection.is_open
            and self._client.takes_writes(self._address)
        )

    async def send(self, documents: list[Document], seconds: float) -> Sent:
        """Send documents to be stored durably.

        Raises StoreUnavailable: any of them may be stored or not.
        """
        statements = {"insert": self._staff.name, "documents": stamped(documents)} | DURABLY
        begun = self._clock.begin()
        reply = await self._command(statements, seconds)
        result = written(reply)
        return Sent(result, self._clock.is_close(begun, result.at))

    async def revision(self, collection: Collection, seconds: float) -> int:
        """Return the revision of a collection, as `revisions.current`. Raises StoreUnavailable."""
        find = {"find": schema.DIRECTORY.name, "filter": {"_id": collection.name}, "limit": 1}
        reply = await self._command(find | {"singleBatch": True}, seconds)
        return revisions.of_document(next(iter(reply["cursor"]["firstBatch"]), None))

    @property
    def wants_connection(self) -> bool:
        """Tell whether `lend` is of use."""
        if self._opening and not self._opening.done():
            return False
        return self._can_be_lent and not self._is_connected()

    def lend(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have the driver open a connection for the loop; in a thread."""
        try:
            lent = self._client.lend_socket(LEND_SECONDS)
        except StoreUnavailable as error:
            log.info("the event loop gets no connection: %s", error)
            return
        if lent is None:
            self._can_be_lent = False
            return

        def open_it() -> None:
            self._opening = loop.create_task(self._open(*lent))

        try:
            loop.call_soon_threadsafe(open_it)
        except RuntimeError:  # the loop has ended
            lent[0].close()

    async def _command(self, statements: Document, seconds: float) -> Document:
        if self._connection is None:
            raise StoreUnavailable("the event loop has no connection")
        database, options = self._staff.database.name, self._staff.codec_options
        return await self._connection.command(database, statements, options, seconds)

    async def _open(self, lent: socket.socket, address: Address) -> None:
        try:
            connection = await LoopConnection.connected(lent)
        except BaseException:
            lent.close()
            raise
        if self._connection:
            self._connection.close()
        # A new connection tells the server no time: nothing is known of its first stamp.
        self._connection, self._address, self._clock = connection, address, Clock()
        if not self._can_be_lent:
            connection.close()

    def close(self) -> None:
        """Close the connection; there is no other any more."""
        self._can_be_lent = False
        if self._connection:
            self._connection.close()
