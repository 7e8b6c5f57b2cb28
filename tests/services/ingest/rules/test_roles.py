"""Who may do what, and what an address has to declare."""

import itertools

import pytest

from ingest.rules.roles import EVERYTHING, LEVEL, TEAM, Role, Scope, Tells, needed, needs, scope_of


def test_every_pair_of_roles() -> None:
    allowed = {
        (has.value, needed.value)
        for has, needed in itertools.product(Role, Role)
        if has.allows(needed)
    }
    assert allowed == {
        *((role.value, "nobody") for role in Role),
        *(("admin", role.value) for role in Role),
        ("ingest", "ingest"),
        ("read", "read"),
    }


def test_of_which_level_an_answer_tells() -> None:
    asked = {LEVEL: "4"}
    assert [Tells.ASKED.asked(parameters, LEVEL) for parameters in (asked, {})] == ["4", ""]
    assert [Tells.ALL.asked(parameters, LEVEL) for parameters in (asked, {})] == ["", ""]
    assert [Tells.NONE.asked(parameters, LEVEL) for parameters in (asked, {})] == [None, None]
    assert [Tells.ASKED.asked(parameters, TEAM) for parameters in (asked, {})] == ["", ""]


def test_a_view_declares_its_role() -> None:
    def view() -> None:
        """Do nothing."""

    with pytest.raises(TypeError, match="declares no role: who may call it"):
        needed(view)
    asked = {LEVEL: "4", TEAM: "Cleaning"}
    assert scope_of(view, asked) == EVERYTHING
    assert needs(Role.READ, Tells.ASKED, Tells.NONE)(view) is view
    assert (needed(view), scope_of(view, asked)) == (Role.READ, Scope("4", None))
    needs(Role.INGEST)(view)
    assert (needed(view), scope_of(view, asked)) == (Role.INGEST, EVERYTHING)
    needs(Role.READ, tells_team=Tells.ASKED)(view)
    assert scope_of(view, asked) == Scope("", "Cleaning")
    view.role = "read"  # type: ignore[attr-defined]  # is no role
    with pytest.raises(TypeError):
        needed(view)
