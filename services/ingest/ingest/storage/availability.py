"""Whether the database answers: while it does not, detections go to the spool and reads fail."""

import logging
import threading

from ingest.errors import StoreUnavailable
from ingest.storage.client import Client

log = logging.getLogger(__name__)

# How long a database that the driver has lost may take to answer. The gateway asks two services.
PROBE_SECONDS = 0.4
# The same before a long read, of a database that the driver has not lost: slow is not away.
READ_PROBE_SECONDS = 0.8


class Availability:
    """What is known of the database without asking it, and how it is asked."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._away = False
        # Set when the thread that drains the spool has something to do.
        self.drain_wanted = threading.Event()

    @property
    def away(self) -> bool:
        """Tell whether the database did not answer when it was last tried."""
        return self._away

    def check_reachable(self) -> None:
        """Raise StoreUnavailable, in under half a second, when the database is away."""
        if self._away:
            raise StoreUnavailable("the database is away")
        if not self._client.server_known():
            try:  # it may be back, or a starved heartbeat was late: ask, but not for long
                self.probe()
            except StoreUnavailable as error:
                self.lost(error)
                raise

    def check_answers(self) -> None:
        """Raise StoreUnavailable, in under a second, also when a shard has just frozen.

        For what may itself take longer; until the driver sees the freeze it would take all of that.
        """
        self.check_reachable()
        self._client.ping(READ_PROBE_SECONDS)

    def probe(self) -> None:
        """Raise StoreUnavailable unless all shards answer within PROBE_SECONDS."""
        self._client.ping(PROBE_SECONDS)

    def lost(self, error: StoreUnavailable) -> None:
        """Note that the database does not answer: from now on detections go to the spool."""
        if not self._away:
            log.warning("the database is away, detections go to the spool: %s", error)
        self._away = True
        self.drain_wanted.set()

    def found(self) -> None:
        """Note that the database answers."""
        self._away = False
