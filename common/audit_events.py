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
    "token made",
    "token revoked",
]
