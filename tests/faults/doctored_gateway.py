"""A gateway that does what none must do, for those who look whether they would notice:
`python -m tests.faults.doctored_gateway lies|forgets|faints run --home …`

    lies       acknowledges a message before it is stored
    forgets    stores without flushing
    faints     ends when it cannot have a descriptor
"""

import os
import sys
import threading

from anyio import create_task_group

from koboshi.channels.web.channel import WebChannel
from koboshi.cli.main import main
from koboshi.domain.ids import EntryId
from koboshi.domain.inbox import EntryState
from koboshi.ports.channel import Accept, Inbound, Receipt
from koboshi.runtime.heartbeat import Heartbeat
from tests.faults.short_run import Doctored

honest_receive = WebChannel.receive
keep_beating = Heartbeat.keep_beating


async def beat_once(heartbeat: Heartbeat) -> None:
    """A later beat would meet the fault and end the gateway before any caller is lied to."""
    heartbeat.every_seconds = 3_600
    await keep_beating(heartbeat)


async def lying_receive(channel: WebChannel, cursor: str | None, accept: Accept) -> None:
    """Serve, and say of everything that it is stored."""
    async with create_task_group() as tasks:

        async def lie(batch: list[Inbound], cursor: str | None = None) -> tuple[Receipt, ...]:
            tasks.start_soon(accept, batch, cursor)
            made_up = Receipt(entry_id=EntryId(1), state=EntryState.ATTACHED, is_duplicate=False)
            return tuple(made_up for _ in batch)

        await honest_receive(channel, cursor, lie)  # type: ignore[arg-type]


def faint_without_descriptors() -> None:
    """Try to have one again and again, and end the process when that fails."""
    never = threading.Event()
    while not never.wait(0.01):
        try:
            os.close(os.dup(0))
        except OSError:
            os._exit(1)


if __name__ == "__main__":
    match sys.argv.pop(1):
        case "lies":
            WebChannel.receive = lying_receive  # type: ignore[assignment,method-assign]
            Heartbeat.keep_beating = beat_once  # type: ignore[assignment,method-assign]
        case "faints":
            threading.Thread(target=faint_without_descriptors, daemon=True).start()
        case "forgets":
            Doctored(synchronous="OFF").prepare()
        case what:
            raise SystemExit(f"nobody does {what!r}")
    main()
