"""Names for people: of places, accounts, tokens."""

import re
import unicodedata

MAX_TEXT = 64
# Blanks of other widths, or that break no line; marks that nobody sees. Joiners belong to scripts.
_BLANK = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_JOINERS = "\u200c\u200d"
_UNSEEN = re.compile(f"[\u00ad\u200b\u200e\u200f\u2060\ufeff]|(?<![^\\x00-\\x7f])[{_JOINERS}]")


def folded(text: str) -> str:
    """Return a text in Unicode's composed form, with plain blanks and without what is not seen."""
    return _BLANK.sub(" ", unicodedata.normalize("NFC", _UNSEEN.sub("", text))).strip()


def fault(text: str, most: int = MAX_TEXT) -> str:
    """Return why a text is no name of at most so many characters, "" where it is one.

    Quotes and backslashes are characters, control codes are not.
    """
    for character in text:
        if not character.isprintable() and character not in _JOINERS:
            return f"must be printable: U+{ord(character):04X} is not"
    return "" if 1 <= len(text) <= most else f"must be 1 to {most} printable characters"
