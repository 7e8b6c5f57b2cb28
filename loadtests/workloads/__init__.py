"""Workloads of four other measured systems, in the words of this one; each passes or fails.

They run in the generator's process. An item of a shop, a tag or a device's push is a detection; a
reader, a user or a device is a staff member. Each module has `run`, which yields lines of which the
last is the verdict, and `SPEED`, how many times faster than the source's its clocks go by default.
"""

from loadtests.workloads import archive, fleet, retail, sync

WORKLOADS = {"retail": retail, "sync": sync, "archive": archive, "fleet": fleet}
