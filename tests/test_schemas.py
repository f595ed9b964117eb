"""``schemas/`` is what the declarations say."""

from pathlib import Path

from pipeline.schemas import schemas

FOLDER = Path(__file__).parents[1] / "schemas"


def test_schema_files_are_current() -> None:
    written = {path.relative_to(FOLDER).as_posix(): path.read_text("utf-8") for path in FOLDER.rglob("*.json")}
    assert written == schemas(), "run python -m pipeline.schemas"
