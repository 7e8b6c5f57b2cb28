"""Addresses that end in the name of a thing, beside some that end in a word."""

from werkzeug.routing import BaseConverter

from common import routes


def words_beside(path: str) -> list[str]:
    """Return the words that stand in other addresses where this one has a name: no name is one."""
    folder = f"{routes.PREFIX}{path.rpartition('/')[0]}/"
    ends = (
        route.path.removeprefix(folder) for route in routes.API if route.path.startswith(folder)
    )
    return [end for end in ends if "/" not in end and "<" not in end]


def name_in(path: str) -> type[BaseConverter]:
    """Return a converter for any text but these words: with another method they are a 405."""
    regex = f"(?!(?:{'|'.join(words_beside(path))})$)[^/]+"
    return type("NameInPath", (BaseConverter,), {"regex": regex, "part_isolating": True})
