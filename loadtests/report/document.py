"""The parts of the report, in Markdown."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

TEXTS = tomllib.loads(Path(__file__).with_name("texts.toml").read_text())


class Section(NamedTuple):
    """A heading with paragraphs, a table and plots (name of file -> SVG)."""

    title: str
    text: Sequence[str] = ()
    table: str = ""
    plots: Mapping[str, str] = {}

    def markdown(self) -> str:
        """Return it with the plots as images."""
        plots = "\n".join(f"![{name}](plots/{name}.svg)" for name in self.plots)
        return "\n\n".join(filter(None, (f"## {self.title}", *self.text, self.table, plots)))


def head(facts: dict[str, Any]) -> str:
    """Return the title, and what was run, when, and on what."""
    load, (done, planned) = facts["load_average"], facts["runs"]
    unfinished = "" if done == planned else f"NOT FINISHED: {done} of {planned} runs. "
    broken = f"BROKE OFF: {', '.join(facts['failed'])}. " if facts["failed"] else ""
    cores = facts.get("box_cores")
    box = f"All of a side had {cores:.2f} CPU together, and no other limit. " if cores else ""
    facts |= {"before": load[0], "least": min(load), "most": max(load)}
    text = TEXTS["head"].format(**facts)
    return f"# Load report: old against new\n\n{unfinished}{broken}{box}{text}"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table, its figures aligned at their right."""
    return "\n".join(map(line, [heads, ["---", *("---:" for _ in heads[1:])], *rows]))


def line(cells: Sequence[str]) -> str:
    """Return one line of a table."""
    return f"| {' | '.join(cells)} |"


def marked(text: str, *, bad: bool) -> str:
    """Return a cell that is to be seen when it is bad."""
    return f"**{text}!**" if bad else text
