"""Names and addresses that nobody knows, and what was probably meant."""

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from functools import lru_cache

from common.routes import PREFIX
from ingest.api.openapi.declarations import OPERATIONS
from ingest.errors import Fault

# What is compared: the time of a comparison grows with the square of the length.
MAX_NAMED, MAX_TEXT = 3, 64
ADDRESS_RATIO = 0.75  # what stands for a parameter is alike by itself
_PLACEHOLDER = re.compile(r"<\w+>")


def unknown(fields: Iterable[str], known: Collection[str]) -> list[Fault]:
    """Return the first names that are not known as faults, each with the nearest that is."""
    # What Python's JSON reads but no UTF-8 can hold is answered as a question mark.
    names = sorted(name for name in fields if name not in known)[:MAX_NAMED]
    texts = [name[:MAX_TEXT].encode("utf-8", "replace").decode() for name in names]
    return [Fault(text, _meant(text, tuple(sorted(known)))) for text in texts]


def meant(fields: Iterable[str], known: Collection[str]) -> dict[str, str]:
    """Return the known names that are near the first names that are not known."""
    names = sorted(name for name in fields if name not in known)[:MAX_NAMED]
    near = {name: _near(name[:MAX_TEXT], tuple(sorted(known))) for name in names}
    return {name: one for name, one in near.items() if one}


def _meant(name: str, known: tuple[str, ...]) -> str:
    near = _near(name, known)
    if near:
        return f"is not known here; did you mean {near}?"
    return "is not known here" + (f"; there are {', '.join(known)}" if known else "")


@lru_cache(maxsize=256)  # a batch has the same slip in each item
def _near(name: str, known: tuple[str, ...]) -> str:
    by_fold = {name.casefold(): name for name in known}
    near = get_close_matches(name.casefold(), by_fold, 1)
    return by_fold[near[0]] if near else ""


def address(path: str) -> str:
    """Return the nearest address of /api/v1 as it is declared, "" where none is near."""
    segments = path[:MAX_TEXT].removeprefix(PREFIX).split("/")
    paths = [operation.path for operation in OPERATIONS if operation.path.startswith(PREFIX)]
    by_text = {_filled(path, segments): path for path in paths}
    near = get_close_matches("/".join(segments), by_text, 1, ADDRESS_RATIO)
    return by_text[near[0]] if near else ""


def _filled(path: str, segments: list[str]) -> str:
    """Return a declared address with what was asked in the place of its parameters."""
    parts = path.removeprefix(PREFIX).split("/")
    asked = dict(enumerate(segments))
    return "/".join(
        asked.get(at) or part if _PLACEHOLDER.fullmatch(part) else part
        for at, part in enumerate(parts)
    )
