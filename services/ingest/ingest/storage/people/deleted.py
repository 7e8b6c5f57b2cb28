"""Whom the collection `latest` shows by detections that somebody deleted from `staff`."""

from collections.abc import Iterable

from bson import Timestamp

from ingest.errors import StoreUnavailable
from ingest.rules.request_parameters import StaffId
from ingest.rules.where import RECENT
from ingest.storage.detections.detections import Detections
from ingest.storage.detections.documents import Document
from ingest.storage.detections.inserts import Inserts
from ingest.storage.people.latest import Latest
from ingest.storage.people.lost_contacts import LostContacts


class Deleted:
    """Finds them, and shows what is left."""

    def __init__(
        self,
        detections: Detections,
        inserts: Inserts,
        latest: Latest,
        lost_contacts: LostContacts,
    ) -> None:
        self._detections = detections
        self._inserts = inserts
        self._latest = latest
        self._lost_contacts = lost_contacts

    def replace(self, staff_ids: list[StaffId]) -> int:
        """Show those of whom detections are gone by what is left; return how many they are.

        While others note, no new detection is lost: what is read first may lack one that is older
        than what is gone, and so is not shown. Once that is gone, whatever is noted is shown, and
        what was noted before is read.
        Raises StoreUnavailable: some may be replaced; once more does no harm.
        """
        shown, at = self._latest.shown(staff_ids)
        gone = self._detections.gone({id_ for ids in shown.values() for id_ in ids}, at)
        affected = {
            staff_id: ids & gone for staff_id, ids in shown.items() if ids & gone or not ids
        }
        if affected:
            replaced = self._latest.replace(affected, self._newest(affected, at))
            newest = self._newest(affected, replaced.at)
            recorded = self._latest.record_changes(row for rows in newest.values() for row in rows)
            if failed := replaced.failed or recorded.failed:
                raise StoreUnavailable(str(failed))
            self._inserts.renew([rows[0] for rows in newest.values() if rows])  # it tells the stamp
            self._lost_contacts.forget(staff_id for staff_id in affected if not newest[staff_id])
            self._latest.remove_empty(list(affected))
        return len(affected)

    def _newest(
        self, staff_ids: Iterable[StaffId], as_of: Timestamp | None
    ) -> dict[StaffId, list[Document]]:
        return {
            staff_id: self._detections.newest(staff_id, RECENT, as_of) for staff_id in staff_ids
        }
