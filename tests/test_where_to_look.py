"""Issue 14: who has only the tree and ARCHITECTURE.md finds the place. So what its table names is
there: every file, and every function and class in the file that stands beside it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "koboshi"
NAMED = re.compile(r"`([\w.]+)`(?: \([^)]*\))? in `([\w/]+\.py)`")
PATH = re.compile(r"`([\w/]+\.(?:py|sql)|[\w/]+/)`")


def table() -> list[str]:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    part = text.partition("## Where to look")[2].partition("\n## ")[0]
    return [line for line in part.splitlines() if line.startswith("| ") and "`" in line]


ROWS = table()


def defined_in(path: Path) -> set[str]:
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            members = (each for each in node.body if hasattr(each, "name"))
            names |= {f"{node.name}.{each.name}" for each in members}
            names |= {each.name for each in node.body if hasattr(each, "name")}
    return names


def test_the_table_answers_the_questions_of_a_newcomer() -> None:
    questions = "\n".join(row.split("|")[1] for row in ROWS)
    for words in ("message accepted", "turn that died judged", "answer become owed", "adopted"):
        assert words in questions


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip())
def test_what_the_table_names_is_there(row: str) -> None:
    for path in PATH.findall(row):
        near = list(SOURCE.glob(f"**/{path.rstrip('/')}"))
        assert near, path
    for name, path in NAMED.findall(row):
        assert name in defined_in(SOURCE / path), f"{name} is not in {path}"
