"""The report as Markdown and as a page."""

import tomllib
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from loadtests.report.published import QUERY, published
from loadtests.tables import Table

CSS = Path(__file__).with_name("report.css")
TEXTS = tomllib.loads(Path(__file__).with_name("texts.toml").read_text())


class Section(NamedTuple):
    """A heading with paragraphs, a table and plots (name of file, SVG)."""

    title: str
    text: Sequence[str]
    table: Table | None = None
    plots: Sequence[tuple[str, str]] = ()


def meaning(**values: Any) -> Section:
    """Return what the figures mean."""
    values |= {"first": published("before")[QUERY], "later": published("after")[QUERY]}
    return Section("What the figures mean", TEXTS["meaning"].format(**values).splitlines())


def head(facts: dict[str, Any]) -> str:
    """Return what was run, when, and on what."""
    load, (done, every) = facts["load_average"], facts["runs"]
    return (
        ("" if done == every else f"NOT FINISHED: {done} of {every} runs. ")
        + (f"BROKE OFF: {', '.join(facts['failed'])}. " if facts["failed"] else "")
        + "{began}, {minutes} minutes: ramps of {ramp_seconds:g} s, {repetitions} repetitions. "
        "{processor}, {cores} cores, {memory_gib} GiB, Linux {kernel}, Python {python}, "
        "commit {commit}; ".format(**facts)
        + f"load average {load[0]} before, {min(load)} to {max(load)} meanwhile (the comparison "
        "itself makes 1 to 2; where it is much more, others used the machine: trust the ratios)."
    )


def markdown(facts: dict[str, Any], sections: Sequence[Section]) -> Iterator[str]:
    """Yield the report's parts for Markdown."""
    yield f"# Load report: old against new\n\n{head(facts)}\n"
    for section in sections:
        yield "\n\n".join((f"## {section.title}", *section.text)) + "\n"
        if section.table:
            yield section.table.markdown()
        yield from (f"![{name}](plots/{name}.svg)" for name, _ in section.plots)


def html(facts: dict[str, Any], sections: Sequence[Section]) -> Iterator[str]:
    """Yield the lines of the page, which needs no other file."""
    yield '<!doctype html><html lang="en"><meta charset="utf-8"><title>Load report</title>'
    yield '<meta name="viewport" content="width=device-width">'
    yield f"<style>{CSS.read_text()}</style><h1>Load report: old against new</h1>"
    yield f'<p class="soft">{escape(head(facts))}</p>'
    for section in sections:
        text = "".join(f"<p>{escape(one)}</p>" for one in section.text)
        yield f"<h2>{escape(section.title)}</h2>{text}"
        if section.table:
            yield section.table.html()
        if section.plots:
            yield f'<div class="plots">{"".join(svg for _, svg in section.plots)}</div>'
    yield "</html>"
