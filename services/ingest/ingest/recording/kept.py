"""All that is kept of a person, for whoever asks what it is."""

import csv
import io
import json
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile

from common.spreadsheet import cell
from ingest.errors import StoreUnavailable
from ingest.recording.forgetting import Stored
from ingest.recording.spool import ALL, LOOKED_AT
from ingest.rules.request_parameters import MAX_UNIX_SECONDS, StaffId, TimeRange
from ingest.storage.access.audit import Audit
from ingest.storage.detections.documents import (
    DamagedDocument,
    Detection,
    decoded,
    detection,
    received_seconds,
)

# Where a detection is: in the database, or in a spool.
STORED, WAITING = "stored", "waiting"
_COLUMNS = ("kept", *Detection._fields)


class Kept(NamedTuple):
    """Where something may be kept of people; `folder` has the spools."""

    stored: Stored
    audit: Audit
    folder: Path

    def write(self, staff_id: StaffId, file: IO[bytes]) -> None:
        """Write an archive with all of it as JSON, and the detections as CSV as well.

        It never holds more than two blocks of detections. Raises StoreUnavailable, DamagedBlock.
        """
        with ZipFile(file, "w", ZIP_DEFLATED) as archive:
            with archive.open("person.json", "w", force_zip64=True) as part:
                for text in self._json(staff_id):
                    part.write(text.encode())
            with archive.open("detections.csv", "w", force_zip64=True) as part:
                part.write(_line(_COLUMNS))
                for row in self._detections(staff_id):
                    part.write(_line(row.values()))

    def waiting(self, staff_id: StaffId, until: float = MAX_UNIX_SECONDS) -> Iterator[Any]:
        """Yield the documents of somebody that came until a unix second and wait in spools.

        Raises StoreUnavailable: one cannot be read.
        """
        for path in sorted(self.folder.glob("*.db")):
            try:
                for document in _documents(path):
                    if document["staff_id"] == staff_id and received_seconds(document) <= until:
                        yield document
            except sqlite3.Error as error:
                raise StoreUnavailable(f"the spool {path} cannot be read: {error}") from error

    def _json(self, staff_id: StaffId) -> Iterator[str]:
        person = self.stored.people.find(staff_id)
        lost = self.stored.lost_contacts.known().get(staff_id)
        shown, _ = self.stored.latest.shown([staff_id])
        head = {
            "staff_id": staff_id,
            "written_at": int(time.time()),
            "person": person and person._asdict(),
            "lost_contact": lost and lost._asdict(),
            "latest": sorted(map(str, shown.get(staff_id, ()))),
            "audit": [entry._asdict() for entry in self.audit.of_person(staff_id)],
        }
        yield f"{json.dumps(head, ensure_ascii=False)[:-1]},\n"
        yield '"detections": ['
        before = "\n"
        for row in self._detections(staff_id):
            yield before + json.dumps(row, ensure_ascii=False)
            before = ",\n"
        yield "\n]}\n"

    def _detections(self, staff_id: StaffId) -> Iterator[dict[str, Any]]:
        for document in self.waiting(staff_id):
            yield _row(WAITING, detection(document))
        everything = TimeRange(staff_id, 0, MAX_UNIX_SECONDS)
        for stored in self.stored.sealed.newest_first(everything):
            yield _row(STORED, stored)


def _documents(path: Path) -> Iterator[Any]:
    """Yield what waits in a spool, whoever has it open; what is damaged is left out."""
    file = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        for table in ("spool", "refused"):
            after = 0
            while rows := file.execute(ALL.format(table), (after, LOOKED_AT)).fetchall():
                after = rows[-1][0]
                for _, stored in rows:
                    try:
                        yield decoded(stored)
                    except DamagedDocument:
                        continue
    finally:
        file.close()


def _row(kept: str, one: Detection) -> dict[str, Any]:
    return {"kept": kept} | one._asdict()


def _line(values: Any) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerow(map(cell, values))
    return text.getvalue().encode()
