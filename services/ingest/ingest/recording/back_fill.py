"""What `latest` lacks, of an older release, and what it shows that somebody has deleted."""

import logging

from ingest.errors import StoreUnavailable
from ingest.rules.request_parameters import StaffId
from ingest.rules.where import RECENT
from ingest.storage.detections.detections import Detections
from ingest.storage.detections.documents import Document
from ingest.storage.detections.inserts import Inserts
from ingest.storage.detections.large_ids import LargeIds
from ingest.storage.people.deleted import Deleted
from ingest.storage.people.latest import Latest
from ingest.tasks.repeated import Repeated, Rest

log = logging.getLogger(__name__)

# How many staff members are looked at in one go, and the rest before the next ones.
GROUP = 100
REST_SECONDS = 0.1
RETRY_SECONDS = 5.0
# How long after a look for what was deleted the next one begins, and the rest within it: together
# a minute, of up to 1500 people.
SWEEP_SECONDS, SWEEP_REST_SECONDS = 45.0, 1.0


class BackFill:
    """Records in `latest`, once, what an older release stored, and stamps the newest of each.

    So each has a state that names the history (`storage/detections/states.py`), once it is noted
    with that stamp (`storage/people/notes.py`): in turns, for a copy may have much that is not.

    Then it looks for what another hand has deleted, an operator's or a TTL index, again and again.

    Two services may do so at once, and while detections come in: to record one twice does no harm.
    """

    def __init__(
        self,
        detections: Detections,
        inserts: Inserts,
        latest: Latest,
        deleted: Deleted,
        large_ids: LargeIds,
    ) -> None:
        self._detections = detections
        self._inserts = inserts
        self._latest = latest
        self._deleted = deleted
        self._large_ids = large_ids
        failure = "older detections are not recorded yet"
        self._fills = Repeated("back-fill", self._fill_once, failure, RETRY_SECONDS)
        failure = "it is not known what was deleted"
        self._sweeps = Repeated("sweep", self._sweep_again, failure, SWEEP_SECONDS)

    def start(self) -> None:
        """Begin, in a thread."""
        self._fills.start()

    def close(self) -> None:
        """End soon; the next start goes on."""
        self._fills.close()
        self._sweeps.close()

    def fill(self) -> int:
        """Record whoever is missing; return how many those were. Raises StoreUnavailable."""
        if count := self._large_ids.as_text():
            log.info("the staff ids of %d detections are texts now: above 2^53", count)
        count = 0
        everybody = self._detections.staff_ids()
        for first in range(0, len(everybody), GROUP):
            missing = self._missing(everybody[first : first + GROUP])
            recorded = self._latest.record_changes(
                document for them in missing for document in them
            )
            if recorded.failed:
                raise StoreUnavailable(str(recorded.failed))
            self._inserts.renew([them[0] for them in missing])
            count += len(missing)
            if self._fills.is_closed_after(REST_SECONDS):
                break
        return count

    def sweep(self) -> int:
        """Show nobody by what is deleted; return of how many it was shown.

        Raises StoreUnavailable.
        """
        count = 0
        everybody, _ = self._latest.every_version(None)
        for first in range(0, len(everybody), GROUP):
            count += self._deleted.replace(everybody[first : first + GROUP])
            if self._sweeps.is_closed_after(SWEEP_REST_SECONDS):
                break
        return count

    def _missing(self, staff_ids: list[StaffId]) -> list[list[Document]]:
        """Return the newest detections of each of those of whom some are not shown, or no stamp."""
        shown, _ = self._latest.shown(staff_ids)
        missing = []
        for staff_id in staff_ids:
            present = shown.get(staff_id, set())
            if len(present) == RECENT:
                continue
            newest = self._detections.newest(staff_id, RECENT)
            if any(document["_id"] not in present for document in newest):
                missing.append(newest)
        return missing

    def _fill_once(self) -> None:
        if count := self.fill():
            log.info("recorded %d staff members with older detections", count)
        self._sweeps.start(Rest(SWEEP_SECONDS))

    def _sweep_again(self) -> Rest:
        try:
            if count := self.sweep():
                log.info("of %d staff members newest detections were deleted", count)
        except StoreUnavailable:
            pass  # who reads tells of it, and the next look finds the same
        return Rest(SWEEP_SECONDS)
