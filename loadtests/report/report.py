"""Writes report.html, report.md and the plots from the CSV files of a comparison."""

import math
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

from loadtests.charts import Axis, chart
from loadtests.figures import LATE_MS, Spread, Summary, spread
from loadtests.measured import Measured, Sample, behind, published
from loadtests.plans import PLANS, RAMP_SECONDS
from loadtests.sides import DURABLE, UNOPTIMISED

CSS = Path(__file__).with_name("report.css")
MEANING = (
    "A step is a number of requests spread evenly over a ramp, whether or not earlier ones were "
    "answered (JMeter's threads with one request each; steps named by it count a ramp of 60 s). "
    "Times are from sending a request to the last byte of its answer, in ms.",
    "Errors are answers without a good status, verification errors good statuses with wrong "
    "content (text, order, each document): every answer was checked. Late is the p99 of how late "
    "the generator itself was: above 100 ms a row is void.",
    "Each figure is the median of the repetitions, errors are the most. Ratios are of the mean "
    "times of neighbouring runs, median (lowest to highest): above 1 the new side is faster.",
    "All sides had two services of 0.3 CPU and 64 MiB each and the same mongod binary, on one "
    "machine with the load generator. The published figures come from a t2.micro: their courses "
    "compare, their milliseconds do not.",
    "old is the source's architecture with its later query; it answers an insert before that is "
    f"on the disk. {DURABLE}: the same, but it waits for the disk, as the new side does. "
    f"{UNOPTIMISED}: with the source's first query, which reads and sorts everything that somebody "
    "has (published for 860 extracts in 60 s: 71 % errors and 40.9 s; with the later query none "
    "and 8.4 s).",
)
STEP_HEADS = [
    "step",
    "side",
    "answers/s",
    "min",
    "max",
    "mean",
    "p50",
    "p99",
    "errors",
    "verif.",
    "late",
]
HEADS = [*STEP_HEADS, "mean/new", "published"]
PUBLISHED = {"old": "before", "new": "after"}
PAIR = ("old", "new")
PARTS = ("ingest-1", "ingest-2", "gateway", "mongod", "monitoring")


class Table(NamedTuple):
    """Cells for both kinds of report."""

    heads: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        """Return the table for Markdown."""
        lines = [self.heads, ["---:" for _ in self.heads], *self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"

    def html(self) -> str:
        """Return the table for a page."""
        head = "".join(f"<th>{escape(cell)}" for cell in self.heads)
        rows = "".join(f"<tr>{''.join(map(self._cell, row))}\n" for row in self.rows)
        return f'<div class="wide"><table><tr>{head}\n{rows}</table></div>'

    def _cell(self, text: str) -> str:
        return f"<td{' class=bad' if text.endswith('!') else ''}>{escape(text)}"


class Section(NamedTuple):
    """A heading with text, a table and plots (title of file, SVG)."""

    title: str
    text: str | tuple[str, ...]
    table: Table | None = None
    plots: tuple[tuple[str, str], ...] = ()


def write(folder: Path) -> int:
    """Write the reports; return 1 when the new side gave wrong or no answers in a plan."""
    measured = Measured(folder)
    sections = [
        _summary(measured),
        _sweeps(measured),
        Section("What the figures mean", MEANING),
        *(_plan(measured, name) for name in measured.plans()),
        _usage(measured),
    ]
    (folder / "plots").mkdir(exist_ok=True)
    for section in sections:
        for name, svg in section.plots:
            (folder / "plots" / f"{name}.svg").write_text(svg)
    (folder / "report.md").write_text(_markdown(measured, sections))
    (folder / "report.html").write_text(_html(measured, sections))
    return int(_wrong(measured) or bool(measured.facts["failed"]))


def _wrong(measured: Measured) -> bool:
    """Sweeps are meant to break; everything else must be right on the new side."""
    plans = [
        one
        for (plan, _), sides in measured.steps.items()
        if not plan.startswith("SWEEP")
        for one in sides["new"].values()
    ]
    beside = any(row.error for row in measured.beside["new"] if not row.plan.startswith("SWEEP"))
    return beside or any(one.errors or one.verification_errors for one in plans)


def _sweeps(measured: Measured) -> Section:
    rows = [row for plan in measured.plans() for row in _ends(measured, plan)]
    text = (
        "The highest arrival rate of a sweep (requests/s) that was answered as fast as it came, "
        "with a mean under 1 s and no error; what the next one met; and the new side's rate "
        "divided by this one's. Beyond its rate the old side queues without end, and the new one "
        "answers a part of the requests with 503, which a phone sends again."
    )
    plots = [_sweep(measured, plan) for plan in measured.plans() if plan.startswith("SWEEP")]
    plots += [_documents(measured, plan) for plan in ("PERF-RT-2", "PERF-RT-2-1")]
    heads = ["what", "side", "highest rate", "ended by", "new/this"]
    table = Table(heads, rows) if rows else None
    known = tuple(plot for plot in plots if plot[1])
    return Section("Where each side ends", text if rows else "", table, known)


def _summary(measured: Measured) -> Section:
    """Return the last step of each plan: the figures that most people look for."""
    rows = []
    for plan in measured.plans():
        step = measured.of(plan)[-1]
        theirs = published().get((plan, step))
        new = measured.spread(plan, step, "new", _mean)
        for side in measured.sides(plan):
            if plan.startswith("SWEEP") or side == "new":
                continue
            means = measured.spread(plan, step, side, _mean), new
            ratio = measured.ratio(plan, step, side, _mean)
            beside = [_theirs(theirs, PUBLISHED[one]) for one in PAIR if side == "old"]
            shown = [_range(one, 1) for one in (*means, ratio)]
            rows.append([plan, step, side, *shown, *(beside or ("", ""))])
    heads = ["plan", "last step", "old side", "its mean", "new", "ratio"]
    heads += ["published before", "published after"]
    text = "Mean response in ms at the last step of each plan, median (lowest to highest):"
    return Section("At the source's rates", text, Table(heads, rows))


def _mean(one: Summary) -> float:
    return one.mean


def _ends(measured: Measured, plan: str) -> Iterator[list[str]]:
    if not plan.startswith("SWEEP"):
        return
    new = measured.capacity(plan, "new").median
    for side in measured.sides(plan):
        rate = measured.capacity(plan, side)
        share = "" if side == "new" or math.isnan(new / rate.median) else f"{new / rate.median:.1f}"
        what = PLANS[plan].text.split(",")[0]
        yield [what, side, _range(rate), _end(measured, plan, side), share]


def _end(measured: Measured, plan: str, side: str) -> str:
    """Return what ended the sweeps of one side."""
    ends, shares = set(), []
    for step in measured.of(plan):
        for one in measured.steps[plan, step][side].values():
            if one.late_p99_ms > LATE_MS:  # it then sends in bursts, and breaks what it measures
                ends.add("generator late")
            elif wrong := one.errors + one.verification_errors:
                shares.append(100 * wrong / one.requests)
            elif one.broke(PLANS[plan].mean_limit_ms) or behind(step, one):
                ends.add("too slow")
    if shares:
        ends.add(f"errors, {_range(spread(shares), 1)} %")
    return ", ".join(sorted(ends))


def _sweep(measured: Measured, plan: str) -> tuple[str, str]:
    series = {side: measured.points(plan, side, 1 / RAMP_SECONDS) for side in measured.sides(plan)}
    what = PLANS[plan].text.split(",")[0]
    axes = Axis(f"{what} a second", log=True), Axis("mean response, ms", log=True)
    return plan.lower(), chart(f"Response time against load: {what}", series, *axes)


def _documents(measured: Measured, plan: str) -> tuple[str, str]:
    if plan not in measured.plans():
        return plan.lower(), ""
    series = {side: measured.points(plan, side) for side in measured.sides(plan)}
    theirs = {name: _published_points(plan, f"{name}_ms") for name in ("before", "after")}
    series |= {f"source {name}": points for name, points in theirs.items()}
    axes = Axis("documents stored"), Axis("mean response, ms", log=True)
    return plan.lower(), chart(f"Response time against documents: {plan}", series, *axes)


def _published_points(plan: str, column: str) -> list[tuple[float, float]]:
    found = {step: one for (name, step), one in published().items() if name == plan}
    return [(int(step), float(one[column])) for step, one in found.items()]


def _plan(measured: Measured, plan: str) -> Section:
    rows = [row for step in measured.of(plan) for row in _step(measured, plan, step)]
    return Section(plan, PLANS[plan].text, Table(HEADS, rows))


def _step(measured: Measured, plan: str, step: str) -> list[list[str]]:
    rows = []
    theirs = published().get((plan, step))
    for side, every in measured.steps[plan, step].items():
        if not every:
            continue
        repetitions = every.values()

        def middle(figure: str, repetitions: Iterable[Summary] = repetitions) -> float:
            return spread([float(getattr(one, figure)) for one in repetitions]).median

        worst = [
            max(getattr(one, name) for one in repetitions)
            for name in ("errors", "verification_errors")
        ]
        row = [_name(plan, step), side, f"{middle('rate'):.1f}"]
        row += [_ms(middle(name)) for name in ("min", "max", "mean", "p50", "p99")]
        row += [f"{count}!" if count else "0" for count in worst]
        late = middle("late_p99_ms")
        row.append(_ms(late) + ("!" if late > LATE_MS else ""))
        ratio = measured.ratio(plan, step, side, _mean)
        row.append("" if side == "new" else _range(ratio, 1))
        row.append(_theirs(theirs, PUBLISHED.get(side)))
        rows.append(row)
    return rows


def _name(plan: str, step: str) -> str:
    return f"{int(step) / RAMP_SECONDS:.0f}/s" if plan.startswith("SWEEP") else step


def _theirs(one: dict[str, str] | None, name: str | None) -> str:
    if one is None or name is None:
        return ""
    most, rate = one[f"{name}_max_ms"], one[f"{name}_rate"]
    mean = _ms(float(one[f"{name}_ms"]))
    return mean + (f" (max {_ms(float(most))})" if most else "") + (f", {rate}/s" if rate else "")


def _usage(measured: Measured) -> Section:
    rows, plots = [], []
    plans = [name for name in measured.plans() if name.startswith("SWEEP")] or measured.plans()
    for side in PAIR:
        for part in PARTS:
            every = [
                samples[part]
                for (_, which, _), samples in measured.usage.items()
                if which == side and samples.get(part)
            ]
            if every:
                rows.append(_used(part, side, every))
    for plan in plans:
        for side in PAIR:
            plots += _over_time(measured, plan, side)
    text = (
        "Of each part over the whole comparison; its limits apply to the two services only. "
        "CPU is in cores; memory is the kernel's count, with page cache; the plots are the first "
        "repetition."
    )
    heads = ["part", "side", "mean CPU", "stopped by its limit", "most memory, MiB", "killed"]
    return Section(
        "CPU and memory", text, Table(heads, rows), tuple(plot for plot in plots if plot[1])
    )


def _used(part: str, side: str, every: list[list[Sample]]) -> list[str]:
    took = sum(samples[-1].seconds - samples[0].seconds for samples in every) or math.nan
    cpu = sum(samples[-1].cpu_seconds - samples[0].cpu_seconds for samples in every)
    stopped = sum(s[-1].throttled_seconds - s[0].throttled_seconds for s in every)
    peak = max(samples[-1].peak_mib for samples in every)
    killed = sum(samples[-1].killed for samples in every)
    row = [part, side, f"{cpu / took:.2f}", f"{stopped:.1f} s", f"{peak:.0f}"]
    return [*row, f"{killed}!" if killed else "0"]


def _over_time(measured: Measured, plan: str, side: str) -> list[tuple[str, str]]:
    parts = measured.usage.get((1, side, plan), {})
    cpu = {
        part: [
            (
                after.seconds,
                (after.cpu_seconds - before.cpu_seconds) / (after.seconds - before.seconds),
            )
            for before, after in zip(parts[part], parts[part][2:], strict=False)
        ]
        for part in PARTS
        if part in parts
    }
    memory = {p: [(s.seconds, s.memory_mib) for s in parts[p]] for p in PARTS if p in parts}
    time_axis, name = Axis("seconds"), f"{plan.lower()}-{side}"
    return [
        (f"{name}-cpu", chart(f"CPU, {side}: {plan}", cpu, time_axis, Axis("cores"))),
        (f"{name}-memory", chart(f"Memory, {side}: {plan}", memory, time_axis, Axis("MiB"))),
    ]


def _ms(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _range(of: Spread, digits: int = 0) -> str:
    if math.isnan(of.median):
        return "-"
    middle, low, high = (f"{value:,.{digits}f}" for value in of)
    return middle if low == high else f"{middle} ({low} to {high})"


def _facts(measured: Measured) -> str:
    f = measured.facts
    load, (done, every) = f["load_average"], f["runs"]
    return (
        ("" if done == every else f"NOT FINISHED: {done} of {every} runs. ")
        + (f"BROKE OFF: {', '.join(f['failed'])}. " if f["failed"] else "")
        + f"{f['began']}, {f['minutes']} minutes: ramps of {f['ramp_seconds']:g} s, "
        f"{f['repetitions']} repetitions. {f['processor']}, {f['cores']} cores, "
        f"{f['memory_gib']} GiB, Linux {f['kernel']}, Python {f['python']}, commit {f['commit']}; "
        f"load average {load[0]} before, {min(load)} to {max(load)} meanwhile (the comparison "
        "itself makes 1 to 2; where it is much more, others used the machine: trust the ratios)."
    )


def _paragraphs(section: Section) -> tuple[str, ...]:
    return (section.text,) * bool(section.text) if isinstance(section.text, str) else section.text


def _markdown(measured: Measured, sections: list[Section]) -> str:
    parts = ["# Load report: old against new\n", _facts(measured) + "\n"]
    for section in sections:
        parts.append("\n\n".join((f"## {section.title}", *_paragraphs(section))) + "\n")
        if section.table:
            parts.append(section.table.markdown())
        parts += [f"![{name}](plots/{name}.svg)" for name, _ in section.plots]
    return "\n".join(parts) + "\n"


def _html(measured: Measured, sections: list[Section]) -> str:
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Load report</title>',
        '<meta name="viewport" content="width=device-width">',
        f"<style>{CSS.read_text()}</style><h1>Load report: old against new</h1>",
        f'<p class="soft">{escape(_facts(measured))}</p>',
    ]
    for section in sections:
        text = "".join(f"<p>{escape(one)}</p>" for one in _paragraphs(section))
        parts.append(f"<h2>{escape(section.title)}</h2>{text}")
        if section.table:
            parts.append(section.table.html())
        if section.plots:
            parts.append(f'<div class="plots">{"".join(svg for _, svg in section.plots)}</div>')
    return "\n".join(parts) + "</html>\n"
