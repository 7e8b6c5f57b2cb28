"""The whole stack inside its limits, where the machine lets us set some."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from loadtests.headroom.stack import LIMITS, LimitedStack
from scripts.processes.control_groups import Limits, LimitsUnavailableError
from tests.needs import MARK

# How long answers take is the command's to say: here the machine may be a busy one, on which the
# first reading of a crowd takes longer than the gateway waits.
SLOW = re.compile(r" s, not [0-9.]+$|^/[a-z0-9/]+: [1-4] x 503 open of ")


@contextmanager
def limited_stack(limits: Mapping[str, Limits] = LIMITS) -> Iterator[LimitedStack]:
    """Run it; where there are no limits, the tests that want it are skipped with the reason."""
    try:
        with LimitedStack(limits) as stack:
            yield stack
    except LimitsUnavailableError as error:
        pytest.skip(f"{MARK}limits: {error}")
