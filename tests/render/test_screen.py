from __future__ import annotations

import pytest

from pipeline.render.screen import Screen
from pipeline.render.text import cells

DIGEST = "sha256:" + "ab" * 32
HEADERS = ("#", "implementation", "latency", "flags")
ROWS = [("1", "deepgemm_m_grouped", "147.3 µs", ""), ("2", "核_kernel", "1.54 ms", "")]


def test_a_table_is_aligned_and_drops_empty_columns() -> None:
    screen = Screen()
    screen.table(HEADERS, ROWS, right=("latency",), indent="")
    assert screen.text() == (
        "#  implementation       latency\n1  deepgemm_m_grouped  147.3 µs\n2  核_kernel            1.54 ms\n"
    )


def test_a_whole_table_keeps_empty_columns() -> None:
    screen = Screen()
    screen.table(("a", "b"), [("1", "")], indent="", whole=True)
    assert screen.text() == "a  b\n1\n"


def test_a_table_without_rows_shows_its_headers_only_where_it_is_whole() -> None:
    whole, other = Screen(), Screen()
    whole.table(("a", "b"), [], indent="", whole=True)
    other.table(("a", "b"), [], indent="")
    assert (whole.text(), other.text()) == ("a  b\n", "")


def test_a_table_that_is_too_wide_becomes_one_block_a_row() -> None:
    screen = Screen(width=30)
    screen.table(HEADERS, ROWS, indent="")
    assert screen.text() == (
        "#: 1\nimplementation:\n  deepgemm_m_grouped\nlatency: 147.3 µs\n"
        "\n"
        "#: 2\nimplementation: 核_kernel\nlatency: 1.54 ms\n"
    )


def test_nothing_is_wrapped_without_a_width() -> None:
    screen = Screen()
    screen.prose("word " * 100)
    screen.pairs([("label", "value " * 100)])
    assert len(screen.lines) == 2


@pytest.mark.parametrize("width", [20, 40, 80])
def test_prose_and_pairs_keep_to_the_width(width: int) -> None:
    screen = Screen(width=width)
    screen.heading("A heading of several words that goes on")
    screen.prose("Some words of prose that are long enough to be wrapped.\nA second line.", "  ")
    screen.pairs([("a label", "with several words that follow it on and on"), ("b", "short"), ("none", "")])
    assert all(cells(line) <= width for line in screen.lines)
    assert "none" not in screen.text()


def test_a_digest_is_never_broken() -> None:
    screen = Screen(width=40)
    screen.pairs([("digest", DIGEST)])
    assert DIGEST in screen.text()


@pytest.mark.parametrize("hostile", ["\x1b[2J", "\u202e", "\x9b31m", "\r"])
def test_no_text_reaches_the_page_unescaped(hostile: str) -> None:
    screen = Screen(width=40)
    text = f"a{hostile}b"
    screen.heading(text)
    screen.prose(text)
    screen.verbatim(text)
    screen.pairs([(text, text)])
    screen.table((text,), [(text,)])
    assert hostile not in screen.text()


def test_headings_are_bold_where_styled_and_stand_apart() -> None:
    screen = Screen(styled=True)
    screen.heading("one")
    screen.blank()
    screen.heading("two")
    assert screen.text() == "\x1b[1mone\x1b[0m\n\n\x1b[1mtwo\x1b[0m\n"
