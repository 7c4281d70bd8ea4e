"""What stands in the database of a home, in short."""

from pathlib import Path

from tests.harness.rows import read_rows


def outbox(home: Path) -> list[tuple[object, object]]:
    return [(row["state"], row["labelled"]) for row in read_rows(home).of("outbox")]


def beats(home: Path) -> int:
    return int(read_rows(home).workers[-1]["heartbeat_ms"])
