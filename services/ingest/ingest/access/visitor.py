"""Whoever makes a request, as far as the services care."""

from typing import NamedTuple

from ingest.rules.roles import Role, Scope


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
    team: str | None = None  # the only one of whose people they are told

    @property
    def limits(self) -> str:
        """Return what they may see alone, in words; "" where that is everything."""
        words = [f"level {self.level}"] if self.level is not None else []
        words += [f"the team {self.team}"] if self.team is not None else []
        return " and ".join(words)

    def may_see(self, scope: Scope) -> bool:
        """Tell whether an answer tells of nothing that they may not see."""
        return (self.level is None or scope.level in (None, self.level)) and (
            self.team is None or scope.team in (None, self.team)
        )


ANYBODY = Visitor("", "anybody", Role.ADMIN)
