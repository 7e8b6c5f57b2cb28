"""Tables for Markdown and for a page."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple


class Table(NamedTuple):
    """Rows of cells; a cell that ends with `!` is shown as bad."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """Return the table for Markdown."""
        lines = [self.heads, ["---", *("---:" for _ in self.heads[1:])], *self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"

    def html(self) -> str:
        """Return the table for a page."""
        head = "".join(f"<th>{escape(cell)}" for cell in self.heads)
        rows = "".join(f"<tr>{''.join(map(self._cell, row))}\n" for row in self.rows)
        return f'<div class="wide"><table><tr>{head}\n{rows}</table></div>'

    def _cell(self, text: str) -> str:
        return f"<td{' class=bad' if text.endswith('!') else ''}>{escape(text)}"
