"""Noting in the audit what a request did, before it is answered."""

import time

from common.audit_events import Event
from ingest.api.http.problems import Problem
from ingest.assembly import get_context
from ingest.storage.access.audit import Entry
from ingest.web import credentials


def refuse_anybody() -> None:
    """Raise Problem where access is open: whoever reaches a port then would get in for good."""
    if get_context().access.admission.open:
        raise Problem("conflict", "access is open: first run ./scripts/configure and restart")


def note(what: Event, of: str = "", **details: str | float | bool | None) -> None:
    """Note what whoever makes this request did. Raises StoreUnavailable: it is not noted.

    It was done all the same; the answer is a 503, and who sends it again does it again, noted.
    """
    visitor = credentials.visitor()
    note_of(visitor.name, visitor.kind, what, of, **details)


def note_of(
    actor: str, kind: str, what: Event, of: str = "", **details: str | float | bool | None
) -> None:
    """Note what somebody did who is known by what this request says."""
    address = credentials.address()
    get_context().access.audit.add(Entry(int(time.time()), actor, kind, what, of, details, address))
