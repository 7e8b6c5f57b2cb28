"""Writes report.html, report.md and the plots from the CSV files of a comparison."""

import re
from pathlib import Path

from markdown_it import MarkdownIt

from loadtests.architectures import DURABLE, INDEXED, OLD_GATEWAY, OLD_SERVICES, UNOPTIMISED
from loadtests.figures import LATE_MS
from loadtests.report import paper, resources, sharding, times
from loadtests.report.document import TEXTS, Section, head
from loadtests.report.first_page import first_page
from loadtests.report.published import AFTER, BEFORE, QUERY, published
from loadtests.report.results import Results

CSS = Path(__file__).with_name("report.css")
IMAGE = re.compile(r'<img src="plots/(.+?)\.svg".*?>')


def files(folder: Path) -> str:
    """Return what is written, for people."""
    return "\n".join(str(folder / name) for name in ("report.html", "report.md", "paper.md"))


def write(folder: Path) -> int:
    """Write the reports; return 1 when the new one failed in a plan: see `Results.wrong`."""
    results = Results(folder)
    names = {"late_ms": LATE_MS, "durable": DURABLE, "unoptimised": UNOPTIMISED, "indexed": INDEXED}
    names |= {"old_gateway": OLD_GATEWAY, "old_services": OLD_SERVICES}
    names |= {"first": published(BEFORE)[QUERY], "later": published(AFTER)[QUERY]}
    sections = [
        first_page(results),
        times.last_steps(results),
        times.sweeps(results),
        sharding.section(results),
        Section("What the figures mean", TEXTS["meaning"].format(**names).splitlines()),
        *(times.steps(results, name) for name in results.plans()),
        resources.usage(results),
    ]
    sections = [section for section in sections if section.title]
    plots = {name: svg for section in sections for name, svg in section.plots.items()}
    (folder / "plots").mkdir(exist_ok=True)
    for name, svg in plots.items():
        (folder / "plots" / f"{name}.svg").write_text(svg)
    parts = [head(results.facts), *(section.markdown() for section in sections)]
    text = "\n\n".join(parts) + "\n"
    (folder / "report.md").write_text(text)
    (folder / "paper.md").write_text(paper.paper(results))
    # The page needs no other file: it has the plots themselves.
    html = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    body = IMAGE.sub(lambda image: plots[image[1]], html)
    (folder / "report.html").write_text(TEXTS["page"].format(css=CSS.read_text(), body=body))
    return int(results.wrong() or bool(results.facts["failed"]))
