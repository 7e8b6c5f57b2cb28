"""What people may be called, and their passwords."""

import pytest

from ingest.errors import ParameterError
from ingest.rules.accounts import account_name, any_text, new_name, new_password, password


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("anna", "anna"),
        ("  ANNA \n", "anna"),
        ("0", "0"),
        ("a@b.example", "a@b.example"),
        ("x._-" * 16, "x._-" * 16),
        ("x" * 65, None),
        ("", None),
        (".anna", None),
        ("an na", None),
        ("änna", None),
    ],
)
def test_a_name_as_it_was_typed(typed: str, name: str | None) -> None:
    assert account_name(typed) == name
    if name and typed == typed.strip():
        assert new_name({"name": typed}, "name") == name


@pytest.mark.parametrize("bad", [" anna", ".anna", "x" * 65])
def test_a_name_that_nobody_gets(bad: str) -> None:
    with pytest.raises(ParameterError, match=r"^name: must be 1 to 64 of "):
        new_name({"name": bad}, "name")


def test_a_password_is_as_long_as_it_is_said() -> None:
    for length in (12, 256):
        assert new_password({"p": "x" * length}, "p") == "x" * length
    with pytest.raises(ParameterError, match=r"^p: must have 12 characters or more$"):
        new_password({"p": "x" * 11}, "p")
    for read in (password, new_password):
        with pytest.raises(ParameterError, match=r"^p: must have 256 characters or fewer$"):
            read({"p": "x" * 257}, "p")
    assert password({"p": "x"}, "p") == "x"  # an old one may be short


def test_keyboards_that_compose_letters_otherwise_give_one_password() -> None:
    assert password({"p": "e\u0301"}, "p") == password({"p": "\u00e9"}, "p") == "\u00e9"


@pytest.mark.parametrize("bad", [None, 7, "", ["x"], {}])
def test_what_is_no_text(bad: object) -> None:
    for read in (any_text, password, new_password, new_name):
        with pytest.raises(ParameterError, match=r"^p: must be a text$"):
            read({"p": bad}, "p")


@pytest.mark.parametrize("bad", ["\ud800", "a\udfff", "\udc00b"])
def test_half_a_letter_is_none(bad: str) -> None:
    with pytest.raises(ParameterError, match=r"^p: is not valid Unicode$"):
        any_text({"p": bad}, "p")


@pytest.mark.parametrize("good", ["a", "é", "\ud7ff", "\ue000", "\U0001f600"])
def test_any_letter_is_one(good: str) -> None:
    assert any_text({"p": good}, "p") == good
