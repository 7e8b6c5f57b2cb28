"""CPU and memory of each part over a comparison."""

import math
from itertools import product

from loadtests.architectures import COMBINED, NEW, OLD, PARTS, SEPARATED
from loadtests.comparison.playbook import Run
from loadtests.plans import PLANS
from loadtests.report.charts import Axis, chart
from loadtests.report.document import TEXTS, Section, marked, table
from loadtests.report.results import Results
from loadtests.stack import Sample

MIB = 2**20
HEADS = ["part", "architecture", "mean CPU", "stopped by its limit", "most memory, MiB", "killed"]


def usage(results: Results) -> Section:
    """Return a table of the parts, and plots over the time of each sweep, or else of each plan."""
    rows, plots = [], dict[str, str]()
    for architecture, part in product((OLD, NEW, COMBINED, SEPARATED), PARTS):
        usage = ((run.architecture, samples) for run, samples in results.usage.items())
        runs = [samples[part] for name, samples in usage if name == architecture and samples[part]]
        if runs:
            rows.append([part, architecture, *_used(runs)])
    plans = results.plans()
    for plan in [name for name in plans if PLANS[name].is_sweep] or plans:
        for architecture in (OLD, NEW):
            plots |= _over_time(results, plan, architecture)
    title = "CPU and memory" if rows else ""  # a box has no parts
    return Section(title, [TEXTS["resources"]], table(HEADS, rows), plots)


def _used(runs: list[list[Sample]]) -> list[str]:
    ends = [(samples[0], samples[-1]) for samples in runs]
    took = sum(last.seconds - first.seconds for first, last in ends) or math.nan
    cpu = sum(last.cpu_seconds - first.cpu_seconds for first, last in ends)
    stopped = sum(last.throttled_seconds - first.throttled_seconds for first, last in ends)
    peak = max(last.peak_bytes for _, last in ends) / MIB
    killed = sum(last.killed for _, last in ends)
    counts = [f"{cpu / took:.2f}", f"{stopped:.1f} s", f"{peak:.0f}"]
    return [*counts, marked(str(killed), bad=killed > 0)]


def _over_time(results: Results, plan: str, architecture: str) -> dict[str, str]:
    """Return the plots of a plan's first run."""
    cpu, memory = {}, {}
    first = results.usage.get(Run(1, architecture, plan), {})
    for part, samples in ((part, first[part]) for part in PARTS if part in first):
        cpu[part] = [
            (now.seconds, (now.cpu_seconds - then.cpu_seconds) / (now.seconds - then.seconds))
            for then, now in zip(samples, samples[2:], strict=False)
        ]
        memory[part] = [(sample.seconds, sample.memory_bytes / MIB) for sample in samples]
    name, title = f"{plan.lower()}-{architecture}", f"{architecture}: {plan}"
    seconds = Axis("seconds")
    plots = {
        f"{name}-cpu": chart(f"CPU, {title}", cpu, seconds, Axis("cores")),
        f"{name}-memory": chart(f"Memory, {title}", memory, seconds, Axis("MiB")),
    }
    return {name: svg for name, svg in plots.items() if svg}
