"""A log that tells of an exception fails a run, in Python's words as in the services' own."""

import logging
from collections.abc import Iterator

import pytest

from common.log_lines import FORMAT, NamelessFormatter
from loadtests.architectures import ARCHITECTURES, OLD
from loadtests.engine import machine
from loadtests.engine.client import Api
from loadtests.stack import Stack
from scripts.processes.waiting import eventually


@pytest.fixture
def stack() -> Iterator[Stack]:
    """Return a stack of no parts."""
    stack = Stack()
    yield stack
    stack.__exit__()


@pytest.mark.parametrize(
    "formatter", [logging.Formatter(FORMAT), NamelessFormatter(FORMAT)], ids=["python's", "ours"]
)
def test_the_part_and_the_first_kind_are_told_once(
    stack: Stack, formatter: logging.Formatter
) -> None:
    handler = logging.FileHandler(stack.folder / "ingest-1.log")
    handler.setFormatter(formatter)
    logger = logging.Logger("ingest")
    logger.addHandler(handler)
    (stack.folder / "mongod.log").write_text("{}\n")
    logger.error("the database is away")
    assert stack.exceptions() == []
    for wrong in ("x", "y"):
        try:
            int(wrong)
        except ValueError:
            logger.exception("a request")
    handler.close()
    [told] = stack.exceptions()
    assert told.startswith("the log of ingest-1 tells of ")
    assert "ValueError" in told
    assert stack.exceptions() == []


@pytest.mark.long
def test_a_request_that_breaks_a_service_is_told() -> None:
    with ARCHITECTURES[OLD](limited=False) as stack:
        api = Api(stack.url)
        assert api.send("/extractbeacon?staff_id=0&start_time=0&end_time=1").status == 200
        assert stack.exceptions() == []
        assert api.send("/extractbeacon?staff_id=x&start_time=0&end_time=1").status == 500
        told = eventually(stack.exceptions)
    assert "ValueError" in told[0]


def test_how_busy_the_machine_was_is_a_share_of_all_cores() -> None:
    before = [100, 0, 50, 1000, 10, 0, 5, 0]
    after = [130, 0, 60, 1050, 15, 0, 10, 0]  # 45 of 100 were busy
    assert machine.busy_share(before, after) == pytest.approx(0.45)
    assert "45% on average, 60% at most" in machine.told([0.45, 0.3, 0.6])
