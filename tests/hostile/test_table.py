"""Everything in the table gets an answer that is declared, and leaves nothing behind."""

from tests.hostile import fuzz, table
from tests.hostile.case import TARGETS
from tests.hostile.site import Site

FUZZED = 2_000


def test_each_case_has_a_name_of_its_own() -> None:
    names = [case.name for case in table.cases()]
    assert sorted(names) == sorted(set(names))
    declared = [
        answers for case in table.cases() for one in TARGETS for answers in case.allowed(one)
    ]
    assert len(declared) > 1000
    assert not {one for answers in declared for one in answers.split() if one[0] == "5"} - {
        "501",
        "503",
        "505",
    }


def test_only_what_is_declared_comes_back(site: Site) -> None:
    found = table.lines(site, table.cases())
    assert list(table.printed(line for line in found if line.wrong))[1:] == []


def test_nothing_breaks_whatever_comes(site: Site) -> None:
    done = fuzz.fuzz(site, FUZZED, seed=1)
    assert done.said.total() >= FUZZED - fuzz.AT_ONCE
    assert done.wrong == []
