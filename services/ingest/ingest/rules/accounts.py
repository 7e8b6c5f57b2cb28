"""What people may be called, and how long their passwords are."""

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from ingest.errors import ParameterError

NAME = re.compile(r"[a-z0-9][a-z0-9._@-]{0,63}")
# Length is what counts, and no rule about kinds of characters (NIST SP 800-63B).
MIN_PASSWORD, MAX_PASSWORD = 12, 256


def account_name(text: str) -> str | None:
    """Return the name that somebody typed, in lower case; None: nobody is called that."""
    name = text.strip().lower()
    return name if NAME.fullmatch(name) else None


def new_name(fields: Mapping[str, Any], field: str) -> str:
    """Return the name of an account. Raises ParameterError."""
    name = any_text(fields, field).lower()
    if not NAME.fullmatch(name):
        raise ParameterError(field, "must be 1 to 64 of a-z, 0-9, . _ @ - and begin with a-z, 0-9")
    return name


def new_password(fields: Mapping[str, Any], field: str) -> str:
    """Return a password that is long enough. Raises ParameterError, which does not repeat it."""
    if len(any_text(fields, field)) < MIN_PASSWORD:
        raise ParameterError(field, f"must have {MIN_PASSWORD} characters or more")
    return password(fields, field)


def password(fields: Mapping[str, Any], field: str) -> str:
    """Return a password as it is hashed, however its keyboard composes letters."""
    text = any_text(fields, field)
    if len(text) > MAX_PASSWORD:
        raise ParameterError(field, f"must have {MAX_PASSWORD} characters or fewer")
    return unicodedata.normalize("NFKC", text)


def any_text(fields: Mapping[str, Any], field: str) -> str:
    """Return a text of a JSON object. Raises ParameterError."""
    text = fields.get(field)
    if not isinstance(text, str) or not text:
        raise ParameterError(field, "must be a text")
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ParameterError(field, "is not valid Unicode")
    return text
