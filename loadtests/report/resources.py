"""CPU and memory of each part over a comparison."""

import math
from itertools import product

from loadtests.architectures import NEW, OLD, PARTS
from loadtests.comparison.machine import Sample
from loadtests.plans import PLANS
from loadtests.report.charts import Axis, chart
from loadtests.report.document import TEXTS, Section
from loadtests.report.results import Results
from loadtests.tables import Table

MIB = 2**20
HEADS = ["part", "architecture", "mean CPU", "stopped by its limit", "most memory, MiB", "killed"]


def usage(results: Results) -> Section:
    """Return a table of the parts, and plots over the time of each sweep, or else of each plan."""
    rows = []
    for architecture, part in product((OLD, NEW), PARTS):
        runs = [
            samples[part]
            for (_, name, _), samples in results.usage.items()
            if name == architecture and samples.get(part)
        ]
        if runs:
            rows.append([part, architecture, *_used(runs)])
    plans = results.plans()
    plans = [name for name in plans if PLANS[name].is_sweep] or plans
    plots = [plot for run in product(plans, (OLD, NEW)) for plot in _over_time(results, *run)]
    return Section("CPU and memory", [TEXTS["resources"]], Table(HEADS, rows), plots)


def _used(runs: list[list[Sample]]) -> list[str]:
    ends = [(samples[0], samples[-1]) for samples in runs]
    took = sum(last.seconds - first.seconds for first, last in ends) or math.nan
    cpu = sum(last.cpu_seconds - first.cpu_seconds for first, last in ends)
    stopped = sum(last.throttled_seconds - first.throttled_seconds for first, last in ends)
    peak = max(last.peak_bytes for _, last in ends) / MIB
    killed = sum(last.killed for _, last in ends)
    counts = [f"{cpu / took:.2f}", f"{stopped:.1f} s", f"{peak:.0f}"]
    return [*counts, f"{killed}!" if killed else "0"]


def _over_time(results: Results, plan: str, architecture: str) -> list[tuple[str, str]]:
    every = results.usage.get((1, architecture, plan), {})
    parts = {part: every[part] for part in PARTS if part in every}
    cpu = {
        part: [
            (now.seconds, (now.cpu_seconds - then.cpu_seconds) / (now.seconds - then.seconds))
            for then, now in zip(samples, samples[2:], strict=False)
        ]
        for part, samples in parts.items()
    }
    memory = {part: [(s.seconds, s.memory_bytes / MIB) for s in parts[part]] for part in parts}
    name, seconds = f"{plan.lower()}-{architecture}", Axis("seconds")
    plots = [
        (f"{name}-cpu", chart(f"CPU, {architecture}: {plan}", cpu, seconds, Axis("cores"))),
        (f"{name}-memory", chart(f"Memory, {architecture}: {plan}", memory, seconds, Axis("MiB"))),
    ]
    return [plot for plot in plots if plot[1]]
