"""Who of the database answers: for whom it does not, detections go to the spool."""

import logging
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

from ingest.errors import StoreUnavailable
from ingest.rules.request_parameters import StaffId
from ingest.storage.database.client import Client
from ingest.storage.people.latest import Latest

log = logging.getLogger(__name__)

# How long a database that the driver has lost may take to answer. The gateway asks two services.
PROBE_SECONDS = 0.4
# The same before a long read, of a database that the driver has not lost: slow is not away.
READ_PROBE_SECONDS = 0.8
# While nothing answers, the drain asks with twice the patience each time: slow is not away.
MAX_PROBE_SECONDS = 2.0
# Of how many people is remembered whether they are reachable; those beyond wait in the spool.
MAX_PEOPLE = 10_000
# Of how many at once their own shard is asked, and how many of those in turn, which takes 3.2 s.
ASKED_AT_ONCE, ASKED_IN_TURN = 8, 64


class Availability:
    """What is known of the database without asking it, and how it is asked.

    When a write fails, the database is *degraded*, and nobody's shard is known to answer. The drain
    asks for those who wait in the spool: some are reachable, or, when nothing answers, the database
    is *away*. It ends when all shards answer and take what waits.
    """

    def __init__(self, client: Client, latest: Latest) -> None:
        self._client = client
        self._latest = latest
        self._degraded = False
        self._away = False
        self._patience_seconds = PROBE_SECONDS
        self._on_trial = False  # all shards answered, and no write has failed since
        # While it is degraded: whose shard answers, and whose does not, the latest last.
        self._reachable: set[StaffId] = set()
        self._silent: OrderedDict[StaffId, None] = OrderedDict()
        self._more_to_ask = False  # somebody was left out
        # Set when the thread that drains the spool has something to do.
        self.drain_wanted = threading.Event()

    @property
    def away(self) -> bool:
        """Tell whether nothing of the database answered when it was last tried."""
        return self._away

    @property
    def degraded(self) -> bool:
        """Tell whether some shard, or nothing at all, did not answer when it was last tried."""
        return self._degraded

    def reachable(self, staff_id: StaffId) -> bool:
        """Tell whether somebody's detections can be stored, as far as that is known."""
        return not self._degraded or staff_id in self._reachable

    def check_shard_of(self, staff_id: StaffId) -> None:
        """Raise StoreUnavailable, at once, when somebody's shard is known not to answer."""
        if staff_id in self._silent:
            raise StoreUnavailable("the shard of this staff member does not answer")

    def check_reachable(self) -> None:
        """Raise StoreUnavailable, in under half a second, when the database is away."""
        if self._away:
            raise StoreUnavailable("the database is away")
        # It may be back, or a starved heartbeat was late: ask, but not for long.
        if not self._client.server_known() and not self._client.any_answers(PROBE_SECONDS):
            self.lost("the database does not answer")
            self._away = True
            raise StoreUnavailable("the database does not answer")

    def check_answers(self) -> None:
        """Raise StoreUnavailable, in under a second, also when a shard has just frozen.

        For what may itself take longer; until the driver sees the freeze it would take all of that.
        """
        self.check_reachable()
        self._client.ping(READ_PROBE_SECONDS)

    def lost(self, why: StoreUnavailable | str) -> None:
        """Note that a write failed: until it is known for whom, detections go to the spool."""
        if not self._degraded:
            log.warning("the database does not take everything, the spool does: %s", why)
        self._patience_seconds = PROBE_SECONDS
        self._degraded, self._on_trial = True, False
        self._reachable = set()
        self._silent = OrderedDict()
        self.drain_wanted.set()

    def note_success(self) -> None:
        """Note that writes were tried since `everything_answers`, and none has failed."""
        if self._on_trial:
            log.warning("the database is back")
            self._degraded = self._away = self._on_trial = False

    def everything_answers(self) -> bool:
        """Tell whether all shards answer, and note whether any does."""
        patience = self._patience_seconds
        self._away = not self.any_answers(patience)
        if self._away:
            self._patience_seconds = min(2 * patience, MAX_PROBE_SECONDS)
            return False
        try:
            self._client.ping(max(patience, READ_PROBE_SECONDS))
        except StoreUnavailable:
            return False
        self._on_trial = True
        self._silent = OrderedDict()
        return True

    def any_answers(self, seconds: float) -> bool:
        """Tell whether any shard answers: one that did so before does it at once.

        Asked all together, a router with a frozen shard takes all the time that it is given.
        """
        known = next(iter(self._reachable), None)
        if known is not None and self._latest.answers(known, seconds):
            return True
        return self._client.any_answers(seconds)

    def ask_for(self, staff_ids: set[StaffId]) -> None:
        """Find out who of these is reachable, as far as that is not known.

        One question shows those of whom something is noted on a shard that answers. Of the others
        the shard of each is asked: who was not noted yet need not wait with those of a dead one.
        """
        reachable, silent = self._reachable, self._silent  # another thread may replace them
        unknown = staff_ids - reachable - silent.keys()
        if not unknown:
            return
        try:
            answering = self._latest.answering(list(unknown), READ_PROBE_SECONDS)
        except StoreUnavailable:  # it was too slow, which says nothing of those that are known
            answering = set()
        hidden = list(unknown - answering)
        self._more_to_ask = len(hidden) > ASKED_IN_TURN
        del hidden[ASKED_IN_TURN:]
        with ThreadPoolExecutor(ASKED_AT_ONCE, "shard-of") as pool:
            answers = list(pool.map(self._answers, hidden))
        answering.update(
            staff_id for staff_id, is_there in zip(hidden, answers, strict=True) if is_there
        )
        if len(reachable) < MAX_PEOPLE:
            reachable.update(answering)
        if len(silent) < MAX_PEOPLE:
            silent.update(
                dict.fromkeys(staff_id for staff_id in hidden if staff_id not in answering)
            )

    def _answers(self, staff_id: StaffId) -> bool:
        return self._latest.answers(staff_id, PROBE_SECONDS)

    def somebody_is_back(self) -> bool:
        """Ask the next of those who were silent: when he answers, the others may as well.

        Also true when somebody was left out, or nobody is known to be silent, as after another
        write that failed: those who wait are to be looked at again.
        """
        silent = self._silent  # another thread may replace it
        if self._more_to_ask or not silent:
            return True
        staff_id, _ = silent.popitem()
        if self._answers(staff_id):
            silent.clear()
            self._reachable.add(staff_id)
            return True
        silent[staff_id] = None
        silent.move_to_end(staff_id, last=False)
        return False
