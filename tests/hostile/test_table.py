"""Everything in the table gets an answer that is declared, and leaves nothing behind."""

from tests.hostile import fuzz, table
from tests.hostile.case import DECLARED, TARGETS, Answers, declared, is_failure
from tests.hostile.site import Site

FUZZED = 1_000


def test_the_declared_table_is_of_these_cases_and_declares_no_failure() -> None:
    names = [case.name for case in table.cases()]
    assert sorted(names) == sorted(set(names))
    used = {declared(name) for name in names}
    lines = [Answers(*line.split("\t")) for line in DECLARED.read_text().splitlines()[1:]]
    assert [line for line in lines if line not in used] == []
    assert [
        one for one in used if any(is_failure(said) for to in TARGETS for said in one.of(to))
    ] == []
    assert not is_failure("503 501 400")
    assert is_failure("200 500")
    assert is_failure("502")


def test_only_what_is_declared_comes_back(site: Site) -> None:
    found = table.lines(site, table.cases())
    assert list(table.printed(line for line in found if line.wrong))[1:] == []


def test_nothing_breaks_whatever_comes(site: Site) -> None:
    done = fuzz.fuzz(site, FUZZED, seed=1)
    assert done.said.total() >= FUZZED - fuzz.AT_ONCE
    assert done.wrong == []
