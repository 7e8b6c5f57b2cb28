"""The mutants of a module: its text with one small change each."""

import difflib
import marshal
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

from cosmic_ray.ast import get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names


class Mutant(NamedTuple):
    """One change, told by the lines that differ: a number of a line says nothing next month."""

    before: str
    after: str
    source: str


def mutants(source: str) -> Iterator[Mutant]:
    """Make each mutant once that is not the same program."""
    seen = {_program(source)}
    nodes = list(_nodes(get_ast(source)))
    for name in operator_names():
        kind = get_operator(name)
        if kind.arguments():
            continue  # has to be told names of variables
        operator = kind()
        places = sum(len(list(operator.mutation_positions(node))) for node in nodes)
        for occurrence in range(places):
            changed = mutate_code(source, operator, occurrence)
            try:
                program = _program(changed)
            except SyntaxError:  # the tool did not understand what it changed
                continue
            if program not in seen:
                seen.add(program)
                yield Mutant(*_difference(source, changed), changed)


def _nodes(node: Any) -> Iterator[Any]:
    yield node
    for child in getattr(node, "children", ()):
        yield from _nodes(child)


def _program(source: str) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # `is` with a literal
        return marshal.dumps(compile(source, "module", "exec", dont_inherit=True))


def _difference(one: str, other: str) -> tuple[str, str]:
    lines = list(difflib.ndiff(one.splitlines(), other.splitlines()))
    before, after = (
        " ".join(" ".join(line[2:].split()) for line in lines if line.startswith(sign))
        for sign in ("- ", "+ ")
    )
    return before, after
