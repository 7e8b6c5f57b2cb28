"""Whether a field stands twice in an object that a decoder of Structs has read."""

import msgspec
import pytest

from ingest.rules.unique_keys import unique_keys


class Item(msgspec.Struct, forbid_unknown_fields=True):
    mac: str
    note: str | msgspec.UnsetType | None = msgspec.UNSET


@pytest.mark.parametrize(
    ("text", "unique"),
    [
        (b'{"mac": "a"}', True),
        (b'{"mac": "a", "note": null}', True),
        (b'{"note": "b", "mac": "a"}', True),
        (b'{"mac": "a", "mac": "a"}', False),
        (b'{"mac": "a", "note": null, "note": "b"}', False),
        (b'{"mac": "a", "note": "b", "note": null}', False),
        (b'{"mac": "\\u0061"}', False),  # not proven
        (b'{"m\\u0061c": "a"}', False),
    ],
)
def test_each_text(text: bytes, *, unique: bool) -> None:
    assert unique_keys(text, msgspec.json.decode(text, type=Item)) is unique


def test_a_long_batch() -> None:
    text = b"[" + b",".join([b'{"mac":"a"}'] * 300) + b"]"
    assert unique_keys(text, msgspec.json.decode(text, type=list[Item]))
