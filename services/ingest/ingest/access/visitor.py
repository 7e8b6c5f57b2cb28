"""Whoever makes a request, as far as the services care."""

from typing import NamedTuple

from ingest.rules.roles import Role


class Credentials(NamedTuple):
    """What a request says of who makes it."""

    authorization: str = ""  # the header, "Bearer ..."
    cookie: str = ""  # the header
    method: str = ""
    csrf: str = ""  # the header X-CSRF-Token
    over_tls: bool = False


class Visitor(NamedTuple):
    """Who that is."""

    name: str  # of a person, or the label of a token
    kind: str  # "token", "person", or "anybody" where access is open
    role: Role
    expires_at: int | None = None  # unix seconds
    csrf: str = ""  # of a session: what its writes have to repeat
    level: str | None = None  # the only one of which they are told
    token_id: str = ""


ANYBODY = Visitor("", "anybody", Role.ADMIN)
