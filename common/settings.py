"""How settings are read from the environment; docs/configuration.md lists them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

# Whether each request needs a token.
ACCESS = (OPEN, REQUIRED) = ("open", "required")
SWITCH = (ON, OFF) = ("on", "off")


def read(
    defaults: Mapping[str, object],
    environment: Mapping[str, str],
    words: Mapping[str, Sequence[str]],
    variable: Callable[[str], str] = str.upper,
) -> dict[str, Any]:
    """Return the settings that are given, by name; each has its default's type.

    `words` are those that a setting may be, `variable` names the variable of a setting. Raises
    ValueError, which names the variable that is wrong.
    """
    values: dict[str, Any] = {}
    for name, default in defaults.items():
        text = environment.get(variable(name))
        if text is None:
            continue
        if isinstance(default, int) and not text.isdecimal():
            raise ValueError(f"{variable(name)} must be a whole number, not {text!r}")
        if name in words and text not in words[name]:
            raise ValueError(f"{variable(name)} must be {' or '.join(words[name])}, not {text!r}")
        values[name] = int(text) if isinstance(default, int) else text
    return values
