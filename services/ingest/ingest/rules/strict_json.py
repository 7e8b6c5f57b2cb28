"""JSON of requests, refused where two readers may differ."""

import json
from collections import Counter
from typing import Any, NoReturn

from common.names import MAX_TEXT
from ingest.errors import ParameterError


def strict_json(body: bytes) -> Any:
    """Return the value of a JSON text in UTF-8, refused where two readers may differ."""
    try:
        text = body.decode("utf-8-sig")  # the legacy endpoints take a byte order mark too
    except UnicodeDecodeError as error:
        raise ParameterError("body", f"is not UTF-8 (byte {error.start})") from None
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise ParameterError("body", f"is not valid JSON: {error}") from None
    except RecursionError:
        raise ParameterError("body", "is nested too deeply") from None
    except ParameterError:
        raise
    except ValueError:  # a number of more digits than Python reads
        raise ParameterError("body", "holds a number that is too long") from None


def strict_object(body: bytes) -> dict[str, Any]:
    """Return the object of a JSON text in UTF-8."""
    value = strict_json(body)
    if not isinstance(value, dict):
        raise ParameterError("body", "must be a JSON object")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        counted = Counter(name for name, _ in pairs)
        twice = counted.most_common(1)[0][0]
        raise ParameterError("body", f"names {twice[:MAX_TEXT]!a} twice in one object")
    return fields


def _no_number(name: str) -> NoReturn:
    raise ParameterError("body", f"is not valid JSON: {name} is no JSON number")
