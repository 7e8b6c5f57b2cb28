"""The whole stack inside its limits, where the machine lets us set some."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from loadtests.headroom.stack import LimitedStack
from scripts.processes.control_groups import LimitsUnavailableError
from tests.needs import MARK


@contextmanager
def limited_stack() -> Iterator[LimitedStack]:
    """Run it; where there are no limits, the tests that want it are skipped with the reason."""
    try:
        with LimitedStack() as stack:
            yield stack
    except LimitsUnavailableError as error:
        pytest.skip(f"{MARK}limits: {error}")
