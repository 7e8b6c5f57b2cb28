"""Reading an object field by field, by one table, with everything that is wrong with it."""

from collections.abc import Callable, Mapping
from typing import Any

from ingest.errors import ParameterError

Reader = Callable[[Mapping[str, Any], str], Any]  # of an object's field; raises ParameterError


def read_all(
    readers: Mapping[str, Reader], given: Mapping[str, Any]
) -> tuple[dict[str, Any], list[ParameterError]]:
    """Return the values that the readers find, by name, and the errors of the others."""
    values: dict[str, Any] = {}
    errors: list[ParameterError] = []
    for name, read in readers.items():
        try:
            values[name] = read(given, name)
        except ParameterError as error:
            errors.append(error)
    return values, errors
