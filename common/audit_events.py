"""What can be done that the audit tells of.

The page has words for each: `rules/audit/audit_entries.js`.
"""

from typing import Literal

Event = Literal[
    "account put",
    "account removed",
    "beacon corrected",
    "beacon put",
    "beacon removed",
    "beacons imported",
    "correction undone",
    "log-in",
    "log-in refused",
    "log-out",
    "log-out everywhere",
    "lost contact",
    "password change",
    "password change refused",
    "past corrected",
    "past given back",
    "people imported",
    "person forgotten",
    "person put",
    "person removed",
    "token made",
    "token revoked",
]

# What tells of a person, by the staff id; where that is forgotten, it tells of nobody.
OF_A_PERSON: tuple[Event, ...] = ("lost contact", "person put", "person removed")
FORGOTTEN = "forgotten"
