"""The list of erasures: who was forgotten, and when, without saying who.

It lies beside the database, for a database that is restored may have all of them again. Of a staff
id it has a keyed hash: whoever reads it sees no id, but finds one by trying all that there may be.
"""

import json
import math
from collections.abc import Mapping
from hashlib import blake2b
from typing import NamedTuple

# The list's name, beside the spools.
FILE_NAME = "erasures.json"
# All services hold all of it, 200 bytes each.
MAX_ERASURES = 5000
_HASH_BYTES = 16


class DamagedList(ValueError):
    """It is no list of erasures."""


class Erasures(NamedTuple):
    """Who was forgotten: until when what came of each of them is gone, in unix seconds."""

    salt: str  # hexadecimal
    times: Mapping[str, float]  # by what stands for a staff id
    newest: float = -math.inf  # of the times

    def covers(self, staff_id: int | str, received_at: float) -> bool:
        """Tell whether what came of a staff member at that time is gone."""
        return received_at <= self.newest and received_at <= self.until(staff_id)

    def until(self, staff_id: int | str) -> float:
        """Return until when all of a staff member is gone; of who was never forgotten -inf."""
        return self.times.get(self.name(staff_id), -math.inf) if self.times else -math.inf

    def name(self, staff_id: int | str) -> str:
        """Return what stands for a staff id."""
        key = bytes.fromhex(self.salt)
        return blake2b(str(staff_id).encode(), key=key, digest_size=_HASH_BYTES).hexdigest()

    def text(self) -> str:
        """Return the list as it is kept, one line for each."""
        return json.dumps({"salt": self.salt, "times": self.times}, indent=0)


NOBODY = Erasures("", {})


def parse(text: str) -> Erasures:
    """Read a list. Raises DamagedList."""
    try:
        values = json.loads(text)
        times = {str(name): float(at) for name, at in values["times"].items()}
        bytes.fromhex(values["salt"])
        return Erasures(values["salt"], times, max(times.values(), default=-math.inf))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DamagedList(f"no list of erasures: {error}") from error
