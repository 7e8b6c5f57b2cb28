"""Who may do what: the role that an address needs, and those that a visitor has."""

from collections.abc import Callable
from enum import Enum
from typing import Any, TypeVar

View = TypeVar("View", bound=Callable[..., Any])


class Role(Enum):
    """What somebody may do; each address needs exactly one."""

    NOBODY = "nobody"  # needs no credential: health, the log-in
    INGEST = "ingest"  # phones: post detections, nothing else
    READ = "read"  # HACS, wall screens
    ADMIN = "admin"  # all of it, and the directory, people and tokens

    def allows(self, needed: "Role") -> bool:
        """Tell whether who has this role may do what needs that one."""
        return needed in (Role.NOBODY, self) or self is Role.ADMIN


def needs(role: Role) -> Callable[[View], View]:
    """Declare the role that a view needs; an application with a view without one does not start."""

    def decorate(view: View) -> View:
        view.role = role  # type: ignore[attr-defined]
        return view

    return decorate


def needed(view: Callable[..., Any]) -> Role:
    """Return the role that a view needs. TypeError: none was declared."""
    role = getattr(view, "role", None)
    if not isinstance(role, Role):
        raise TypeError(f"{view.__qualname__} declares no role: who may call it?")
    return role
