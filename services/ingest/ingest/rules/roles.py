"""Who may do what: the role that an address needs, and those that a visitor has."""

from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, NamedTuple, TypeVar

from common import routes

View = TypeVar("View", bound=Callable[..., Any])


class Role(Enum):
    """What somebody may do; each address needs exactly one."""

    NOBODY = routes.NOBODY  # needs no credential: health, the log-in
    INGEST = routes.INGEST  # phones: post detections, nothing else
    READ = routes.READ  # HACS, wall screens
    ADMIN = routes.ADMIN  # all of it, and the directory, people and tokens

    def allows(self, needed: "Role") -> bool:
        """Tell whether who has this role may do what needs that one."""
        return needed is self or self is Role.ADMIN or needed is Role.NOBODY


@cache
def role_at(method: str, path: str) -> Role:
    """Return the role that a method of an address needs."""
    return Role(routes.role(method, path))


LEVEL, TEAM = "level", "team"


class Tells(Enum):
    """Of which levels, or teams, an address tells: who may see one gets nothing of the others."""

    ALL = "all"  # and so nothing to who may see one
    ASKED = "asked"  # of the one in its parameter of that name
    NONE = "none"

    def asked(self, parameters: Mapping[str, str], name: str) -> str | None:
        """Return which an answer tells of, "" for all of them, None for none."""
        if self is Tells.ASKED:
            return parameters.get(name, "")
        return None if self is Tells.NONE else ""


class Scope(NamedTuple):
    """What an answer tells of, or somebody may see: a level, a team."""

    level: str | None
    team: str | None


EVERYTHING = Scope("", "")


def needs(
    role: Role, tells: Tells = Tells.ALL, tells_team: Tells = Tells.ALL
) -> Callable[[View], View]:
    """Declare the role that a view needs; an application with a view without one does not start."""

    def decorate(view: View) -> View:
        view.role, view.tells = role, (tells, tells_team)  # type: ignore[attr-defined]
        return view

    return decorate


def needed(view: Callable[..., Any]) -> Role:
    """Return the role that a view needs. TypeError: none was declared."""
    role = getattr(view, "role", None)
    if not isinstance(role, Role):
        raise TypeError(f"{view.__qualname__} declares no role: who may call it?")
    return role


def scope_of(view: Callable[..., Any], parameters: Mapping[str, str]) -> Scope:
    """Return what a view tells of, asked with these parameters."""
    level, team = getattr(view, "tells", (Tells.ALL, Tells.ALL))
    return Scope(level.asked(parameters, LEVEL), team.asked(parameters, TEAM))
