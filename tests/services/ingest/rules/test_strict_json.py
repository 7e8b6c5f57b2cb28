"""What two readers of a JSON text may take for different things is refused, in words."""

import json

import pytest

from ingest.errors import ParameterError
from ingest.rules.strict_json import strict_json, strict_object


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'{"a": [1, {"a": null}], "b": "\\u00e9"}', {"a": [1, {"a": None}], "b": "é"}),
        (b"[]", []),
        (b"\xef\xbb\xbf[]", []),  # with a byte order mark
        (b"1.5", 1.5),
        ("é".join('""').encode(), "é"),
    ],
)
def test_good_json(body: bytes, value: object) -> None:
    assert strict_json(body) == value


def test_an_object_may_be_large() -> None:
    large = {str(number): number for number in range(300)}
    assert strict_json(json.dumps(large).encode()) == large


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"\xff": 1}', r"is not UTF-8 \(byte 2\)$"),
        (b"{", "is not valid JSON: "),
        (b"", "is not valid JSON: "),
        (b"NaN", "is not valid JSON: NaN is no JSON number$"),
        (b'{"a": -Infinity}', "is not valid JSON: -Infinity is no JSON number$"),
        (b"[" * 100_000, "is nested too deeply$"),
        (b"1" * 5000, "holds a number that is too long$"),
        (b'{"a": 1, "b": 2, "c": 3, "b": 4}', "names 'b' twice in one object$"),
        (b'[{"\xc3\xa9": {"a": 1, "a": 1}}]', "names 'a' twice in one object$"),
        (b'{"\xc3\xa9": 1, "\\u00e9": 1}', r"names '\\xe9' twice in one object$"),
        (b'{"%s": 1, "%s": 1}' % ((b"x" * 99,) * 2), f"names '{'x' * 64}' twice in one object$"),
    ],
)
def test_bad_json_is_named(body: bytes, said: str) -> None:
    with pytest.raises(ParameterError, match=f"^body: {said}"):
        strict_json(body)


def test_an_object_is_wanted() -> None:
    assert strict_object(b'{"a": 1}') == {"a": 1}
    for body in (b"[]", b"null", b'"a"', b"1"):
        with pytest.raises(ParameterError, match=r"^body: must be a JSON object$"):
            strict_object(body)
