"""Reading an object field by field, by one table, with everything that is wrong with it."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from ingest.api.http import guesses
from ingest.errors import Fault, ParameterError

Reader = Callable[[Mapping[str, Any], str], Any]  # of an object's field; raises ParameterError


def read_all(
    readers: Mapping[str, Reader], fields: Mapping[str, Any], others: Collection[str] = ()
) -> tuple[dict[str, Any], list[Fault]]:
    """Return the values that the readers find, by name, and the faults of the others.

    Where something is wrong, names that neither the readers nor `others` have are named too: one
    of them may be a slip, of what is then missing.
    """
    values: dict[str, Any] = {}
    faults: list[Fault] = []
    for name, read in readers.items():
        try:
            values[name] = read(fields, name)
        except ParameterError as error:
            faults.append(error.fault)
    if faults:
        faults += guesses.unknown(fields, (*readers, *others))
    return values, faults
