"""What a backup and a restore did, in lines for a person. Pure."""

from collections.abc import Iterator
from pathlib import Path

from koboshi.cli.options import counted
from koboshi.ports.backups import BackupStanding


def made_lines(made: BackupStanding) -> Iterator[str]:
    yield f"made      {made.file}"
    yield f"checked   {made.bytes} bytes, read again from the first page to the last"
    yield "holds     " + ", ".join(f"{count} {name}" for name, count in made.rows.items())
    for name in made.removed:
        yield f"removed   {name}: enough newer ones are kept"


def restored_lines(file: Path, kept: str | None, held: int, open_turns: int) -> Iterator[str]:
    yield f"restored  {file}"
    where = "there was no database here before" if kept is None else kept
    yield f"kept      {where}"
    yield f"held      {counted(held, 'delivery', 'deliveries')} that may have arrived since"
    if held:
        yield "          koboshi outbox list --open       shows them"
        yield "          koboshi outbox release --all     sends them, marked as possible duplicates"
        yield "          koboshi outbox drop d1           gives one up"
    if open_turns:
        turns = counted(open_turns, "turn")
        yield f"open      {turns}: the next start judges them as after a crash"
        yield "          koboshi turns list --open        shows them; `turns drop` ends one"
