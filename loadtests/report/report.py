"""Writes report.html, report.md and the plots from the CSV files of a comparison."""

from pathlib import Path

from loadtests.architectures import DURABLE, UNOPTIMISED
from loadtests.figures import LATE_MS
from loadtests.report import document, resources, times
from loadtests.report.results import Results


def write(folder: Path) -> int:
    """Write the reports; return 1 when the new one gave wrong or no responses in a plan."""
    results = Results(folder)
    sections = [
        times.last_steps(results),
        times.sweeps(results),
        document.meaning(late_ms=LATE_MS, durable=DURABLE, unoptimised=UNOPTIMISED),
        *(times.steps(results, name) for name in results.plans()),
        resources.usage(results),
    ]
    (folder / "plots").mkdir(exist_ok=True)
    for section in sections:
        for name, svg in section.plots:
            (folder / "plots" / f"{name}.svg").write_text(svg)
    for file, write in (("report.md", document.markdown), ("report.html", document.html)):
        (folder / file).write_text("\n".join(write(results.facts, sections)) + "\n")
    return int(results.wrong() or bool(results.facts["failed"]))
