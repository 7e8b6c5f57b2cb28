"""Who may do what, and what an address has to declare."""

import itertools

import pytest

from ingest.rules.roles import LEVEL, Role, Tells, levels_of, needed, needs


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
    assert [Tells.ASKED.level(parameters) for parameters in (asked, {})] == ["4", ""]
    assert [Tells.ALL.level(parameters) for parameters in (asked, {})] == ["", ""]
    assert [Tells.NONE.level(parameters) for parameters in (asked, {})] == [None, None]


def test_a_view_declares_its_role() -> None:
    def view() -> None:
        """Do nothing."""

    with pytest.raises(TypeError, match="declares no role: who may call it"):
        needed(view)
    assert levels_of(view) is Tells.ALL
    assert needs(Role.READ, Tells.ASKED)(view) is view
    assert (needed(view), levels_of(view)) == (Role.READ, Tells.ASKED)
    needs(Role.INGEST)(view)
    assert (needed(view), levels_of(view)) == (Role.INGEST, Tells.ALL)
    view.role = "read"  # type: ignore[attr-defined]  # is no role
    with pytest.raises(TypeError):
        needed(view)
