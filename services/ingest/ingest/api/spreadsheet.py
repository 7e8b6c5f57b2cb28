"""Texts in the cells of a CSV file that somebody may open in a spreadsheet."""

# What begins a formula, in full width too, or a space that a spreadsheet may drop before one.
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", " ")
_QUOTE = "'"


def cell(value: str) -> str:
    """Return a text for a spreadsheet, which must not take a name for a formula."""
    return _QUOTE + value if _is_risky(value) else value


def text(value: str) -> str:
    """Return what `cell` was given."""
    plain = value.removeprefix(_QUOTE)
    return plain if _is_risky(plain) else value


def _is_risky(value: str) -> bool:
    return value.startswith(_FORMULA) or not value[:1].isprintable()  # a tab, a line's end
