"""What the workloads share: how they are run, and the verdict."""

import random
from collections.abc import Iterator
from typing import NamedTuple

from loadtests.workloads.resending import Clients


class Setting(NamedTuple):
    """What a workload is run with."""

    seconds: float
    speed: float  # how many times faster than the source's its clocks go
    size: int  # devices of the fleet
    mongod: int  # process to freeze; 0: none
    pending: tuple[str, ...]  # addresses that tell how many detections wait
    csv: str = ""  # file for how many waited, over time; "" for none


def verdict(clients: Clients, problems: list[str], only: int = 0) -> Iterator[str]:
    """Yield PASS, or FAIL and why; `only` looks at so many staff members, by chance."""
    every = list(clients.acknowledged)
    sampled = 0 < only < len(every)
    wrong = clients.stored_wrong(random.sample(every, only) if sampled else every)
    if clients.drops:
        problems = [*problems, f"{clients.drops} dropped"]
    if wrong:
        staff, (found, expected) = next(iter(wrong.items()))
        problems = [*problems, f"{len(wrong)} histories wrong: {staff} {found}, not {expected}"]
    looked = f"{only} of " if sampled else ""
    right = f"PASS: stored is what was acknowledged ({looked}{len(every)} histories)"
    yield f"FAIL: {'; '.join(problems)}" if problems else right
