"""Everything in the table gets an answer that is declared, and leaves nothing behind."""

import pytest

from tests.security import fuzz, table
from tests.security.case import CREDENTIALS, DECLARED, TARGETS, Answers, declared, is_failure
from tests.security.report import Report
from tests.security.site import Guarded

FUZZED, MANY = 1_000, 100_000


def test_the_declared_table_is_of_these_cases_and_declares_no_failure() -> None:
    cases = table.cases()
    names = [case.name for case in cases]
    assert sorted(names) == sorted(set(names))
    used = {declared(name) for name in names}
    lines = [Answers(*line.split("\t")) for line in DECLARED.read_text().splitlines()[1:]]
    assert [line for line in lines if line not in used] == []
    assert [
        row for row in used if any(is_failure(said) for to in TARGETS for said in row.of(to))
    ] == []
    assert not is_failure("503 400")
    assert is_failure("200 500")
    assert is_failure("501")
    without = {case.name for case in cases if CREDENTIALS not in case.sent}
    assert without == {f"line: {name}" for name in NOBODYS}


# What is no request, or none with a header.
NOBODYS = ["CONNECT", "HTTP/0.9", "HTTP/2's preface", "TLS", "a mail"]


@pytest.mark.long
@pytest.mark.parametrize("name", ["admin", "nobody"])
def test_only_what_is_declared_comes_back(guarded: Guarded, name: str) -> None:
    [visitor] = [visitor for visitor in guarded.visitors if visitor.name == name]
    cases = table.cases()
    lines = table.lines(guarded, cases, visitor)
    # On a busy machine the page may be a 503 that asks for patience: those are asked again.
    late = {line.name for line in lines if line.wrong and line.said.startswith("503")}
    again = table.lines(guarded, [case for case in cases if case.name in late], visitor)
    lines = [line for line in lines if line.name not in late] + again
    assert list(table.printed(line for line in lines if line.wrong))[1:] == []


@pytest.mark.long
def test_nothing_breaks_whatever_comes(guarded: Guarded) -> None:
    done = fuzz.fuzz(guarded, FUZZED, seed=1)
    assert done.said.total() >= FUZZED - fuzz.AT_ONCE
    assert done.wrong == []


@pytest.mark.named
def test_a_hundred_thousand_requests_as_everybody(guarded: Guarded) -> None:
    report = Report()
    report.run(guarded, MANY, seed=2)
    assert report.requests >= MANY
    assert [line for line in report.lines if line.startswith("WRONG")] == []
    assert report.wrong == 0
