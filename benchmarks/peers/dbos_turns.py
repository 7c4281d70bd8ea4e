"""A turn as a DBOS workflow, on SQLite or PostgreSQL. Prints one JSON line."""

import asyncio
import sqlite3
from pathlib import Path

from dbos import DBOS, DBOSConfig, SetWorkflowID  # type: ignore[import-not-found]

from benchmarks.steady import TEXT_BYTES, Load, load_of, measure, parser, print_line, words


@DBOS.step()
async def ask_model(client: int, number: int) -> dict[str, object]:
    calls = [{"tool": "read", "arguments": f'{{"path": "file-{place}"}}'} for place in (1, 2)]
    return {"text": words(client, number, "reply"), "calls": calls}


@DBOS.step()
async def run_tool(client: int, number: int, place: int) -> str:
    return words(client, number, f"result {place}")


@DBOS.step()
async def make_answer(client: int, number: int) -> str:
    return words(client, number, "answer", 2 * TEXT_BYTES)


@DBOS.step()
async def deliver(client: int, number: int, part: int) -> str:
    return f"platform-{client}-{number}-{part}"


@DBOS.workflow()
async def run_turn(client: int, number: int, message: str) -> str:
    """DBOS stores the arguments before it begins: that is where the message is accepted."""
    await ask_model(client, number)
    await run_tool(client, number, 1)
    await run_tool(client, number, 2)
    await make_answer(client, number)
    await deliver(client, number, 1)
    await deliver(client, number, 2)
    return f"{len(message)} bytes answered"


async def turn(client: int, number: int) -> None:
    with SetWorkflowID(f"message-{client}-{number}"):
        await run_turn(client, number, words(client, number, "message"))


async def run(load: Load, config: DBOSConfig) -> None:
    DBOS(config=config)
    DBOS.launch()
    try:
        print_line(await measure(turn, load))
    finally:
        DBOS.destroy()


def use_write_ahead_log(file: Path) -> None:
    """The journal mode is kept in the file, so setting it before DBOS opens it is enough."""
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()


def main() -> None:
    options = parser(__doc__ or "")
    options.add_argument("--wal", action="store_true", help="a write-ahead log, set by hand")
    options.add_argument("--url", default="", help="a database of PostgreSQL instead of the file")
    chosen = options.parse_args()
    load = load_of(chosen)
    if chosen.wal:
        use_write_ahead_log(load.file)
    config: DBOSConfig = {
        "name": "koboshi-bench",
        "system_database_url": chosen.url or f"sqlite:///{load.file}",
        "log_level": "ERROR",
    }
    asyncio.run(run(load, config))


if __name__ == "__main__":
    main()
