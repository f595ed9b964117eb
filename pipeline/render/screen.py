"""A page of text: headings, prose, label-value pairs and tables that fit the terminal.

On a terminal lines are wrapped to its width and a table that is too wide is turned into one block a
row. In a pipe nothing is wrapped, cut or coloured. Every text given is data and is made safe
(:func:`pipeline.render.text.visible`); styles are added here only.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pipeline.render.text import cells, visible

_GAP = "  "

_NARROWEST = 20
"""Columns that values need beside their labels; with fewer they go below."""


@dataclass
class Screen:
    """Lines of text for a width in columns; ``width`` None: no limit, ``styled``: bold headings."""

    width: int | None = None
    styled: bool = False
    lines: list[str] = field(default_factory=list)

    def text(self) -> str:
        """Return the page, each line ended."""
        return "".join(line + "\n" for line in self.lines)

    def blank(self) -> None:
        """Add an empty line, never two in a row and none at the top."""
        if self.lines and self.lines[-1]:
            self.lines.append("")

    def heading(self, text: str) -> None:
        """Add a heading after an empty line."""
        self.blank()
        self.lines.extend(
            f"\x1b[1m{line}\x1b[0m" if self.styled else line for line in self._wrap(visible(text), "", "")
        )

    def prose(self, text: str, indent: str = "") -> None:
        """Add a text of one or more paragraphs; each of its lines is wrapped on its own."""
        for line in text.strip("\n").split("\n"):
            clean = visible(line.rstrip("\r").replace("\t", "    "))
            lead = indent + clean[: len(clean) - len(clean.lstrip())]
            self.lines.extend(self._wrap(clean.strip(), lead, lead))

    def verbatim(self, text: str, indent: str = "") -> None:
        """Add lines as they are, neither wrapped nor joined: code and JSON."""
        self.lines.extend(indent + visible(line) for line in text.split("\n"))

    def pairs(self, pairs: Iterable[tuple[str, str]], indent: str = _GAP) -> None:
        """Add labels with their values, the values in one column where they fit."""
        known = [(visible(label), visible(value)) for label, value in pairs if value]
        label_width = max((cells(label) for label, _ in known), default=0)
        for label, value in known:
            lead = indent + label + " " * (label_width - cells(label)) + _GAP
            longest = max(map(cells, value.split(" ")))
            if self.width is None or cells(lead) + max(longest, _NARROWEST) <= self.width:
                self.lines.extend(self._wrap(value, lead, " " * cells(lead)))
                continue
            first = f"{indent}{label}: "
            if cells(first) + longest > self.width:
                self.lines.append(first.rstrip())
                first = indent + _GAP
            self.lines.extend(self._wrap(value, first, indent + _GAP))

    def table(
        self,
        headers: Sequence[str],
        rows: Iterable[Sequence[str]],
        *,
        right: Sequence[str] = (),
        indent: str = _GAP,
        whole: bool = False,
    ) -> None:
        """Add a table; columns named in ``right`` are set flush right.

        Columns without any value are left out, unless the table is wanted ``whole``.
        """
        clean = [[visible(cell) for cell in row] for row in rows]
        used = [index for index in range(len(headers)) if whole or any(row[index] for row in clean)]
        if not used:
            return
        names = [visible(headers[index]) for index in used]
        body = [[row[index] for index in used] for row in clean]
        widths = [max(cells(cell) for cell in column) for column in zip(names, *body, strict=True)]
        if self.width is not None and len(indent) + sum(widths) + len(_GAP) * (len(widths) - 1) > self.width:
            self._blocks(names, body, indent)
            return
        for row in [names, *body]:
            line = _GAP.join(
                " " * (width - cells(cell)) + cell if name in right else cell + " " * (width - cells(cell))
                for name, cell, width in zip(names, row, widths, strict=True)
            )
            self.lines.append((indent + line).rstrip())

    def _blocks(self, names: Sequence[str], body: Sequence[Sequence[str]], indent: str) -> None:
        for number, row in enumerate(body):
            if number:
                self.blank()
            self.pairs(zip(names, row, strict=True), indent)

    def _wrap(self, text: str, first: str, rest: str) -> list[str]:
        if self.width is None or cells(first) + cells(text) <= self.width:
            return [(first + text).rstrip()]
        # Long words stay whole: a digest broken by a line end can be copied from no terminal.
        return textwrap.wrap(
            text,
            self.width,
            initial_indent=first,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,
        )
