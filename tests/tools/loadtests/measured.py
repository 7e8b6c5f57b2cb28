"""A run of a plan whose generator kept its times."""

from collections.abc import Callable

import pytest

from loadtests.verdict import VOID

ATTEMPTS = 10
APART = 1_000_000  # between the staff ids of two attempts


def measured(run: Callable[[int], int], capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Return the exit status and the output of run(shift), again where it is void.

    A plan of fractions of a second is void now and then on a busy machine: nothing is known then.
    """
    for attempt in range(ATTEMPTS):
        status, (output, errors) = run(attempt * APART), capfd.readouterr()
        print(output, errors)
        if f"  {VOID}: " not in output:
            break
    return status, output
