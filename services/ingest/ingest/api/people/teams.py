"""The team that a request asks about: who is of it."""

from collections.abc import Callable

from flask import request

from common import names
from ingest.api.http.query import TEAM
from ingest.assembly import get_context
from ingest.rules.request_parameters import StaffId


def asked() -> str:
    """Return the team that the request names, "" for everybody."""
    return names.folded(request.args.get(TEAM.name, ""))


def members(team: str) -> Callable[[StaffId], bool]:
    """Return what tells whether somebody is of a team; of "" everybody is.

    Raises StoreUnavailable: the people were never read.
    """
    if not team:
        return lambda _: True
    teams = get_context().people.names.current().teams
    return lambda staff_id: teams.get(staff_id) == team


def tag(team: str) -> str:
    """Return a text that changes with who is of a team. Raises StoreUnavailable."""
    return get_context().people.names.current().tag if team else ""
