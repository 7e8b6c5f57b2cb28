"""What `/metrics` of a part says, as tests read it."""

import re
import subprocess

_SAMPLE = re.compile(r'^(\w+)(\{(?:\w+="(?:[^"\\\n]|\\.)*",?)*\})? (\S+)$')


def samples(text: str) -> dict[str, float]:
    """Return each value by its name with its labels, as it is written."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    matches = [_SAMPLE.match(line) for line in lines]
    assert all(matches), lines
    values = {f"{match[1]}{match[2] or ''}": float(match[3]) for match in matches if match}
    assert len(values) == len(lines), "a sample is there twice"
    return values


def complaints(text: str) -> str:
    """Return what promtool has to say of a page of metrics, "" for nothing."""
    command = ["promtool", "check", "metrics"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr
