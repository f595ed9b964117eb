"""Three revisions of one small trace set: added, changed, withdrawn and returned records; edited and renamed files."""

from __future__ import annotations

from tests.fake_hub.sets import definition, solution, trace

A, B = trace("a", 3.0, 1), trace("b", 2.0, 2)
SLOW, FAST, AFTER = trace("a", 2.8, 3), trace("b", 1.0, 4), trace("a", 0.9, 5)

DOCUMENTS = {
    "definitions/elementwise/scale.json": definition(),
    "solutions/alice/elementwise/scale/a.json": solution("a", content="a"),
    "solutions/alice/elementwise/scale/b.json": solution("b", content="b"),
}
TRACES = "traces/alice/elementwise/scale.jsonl"
MOVED = "traces/alice/elementwise/scale-2026.jsonl"
EDITED = {"solutions/alice/elementwise/scale/a.json": solution("a", content="a, edited")}

ONE = DOCUMENTS | {TRACES: A + B + FAST}
"""a at 3.0 ms, b at 2.0 ms and at 1.0 ms: three records, b's 1.0 ms holds."""

TWO = DOCUMENTS | EDITED | {MOVED: A + B + SLOW}
"""FAST is gone; the file has another name; the edited a is measured at 2.8 ms."""

THREE = DOCUMENTS | EDITED | {MOVED: A + B + SLOW, TRACES: FAST + AFTER}
"""FAST is back, in another file than the others; the edited a takes the record at 0.9 ms."""
