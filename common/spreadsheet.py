"""Texts in the cells of a CSV file that somebody may open in a spreadsheet."""

from typing import Any

# What begins a formula, in full width too, or a space that a spreadsheet may drop before one.
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", " ")
_QUOTE = "'"
MARK = "\ufeff"


def cell(value: Any) -> Any:
    """Return a value for a spreadsheet, which must not take a text for a formula."""
    return _QUOTE + value if isinstance(value, str) and _is_risky(value) else value


def marked(file: str) -> str:
    """Return a file with the mark by which a spreadsheet knows UTF-8, where it needs it."""
    return file if file.isascii() else MARK + file


def text(value: str) -> str:
    """Return what `cell` was given."""
    plain = value.removeprefix(_QUOTE)
    return plain if _is_risky(plain) else value


def _is_risky(value: str) -> bool:
    begin = value.lstrip(_QUOTE)  # else "'=1" and "=1" were one cell, and one of both came back
    return begin.startswith(_FORMULA) or not begin[:1].isprintable()  # a tab, a line's end
