"""A gateway that does what none must do, for those who look whether they would notice:
`python -m tests.faults.doctored_gateway lies|forgets run --home …`

    lies       acknowledges a message before it is stored
    forgets    stores without flushing
"""

import sys

from anyio import create_task_group

from koboshi.channels.web.channel import WebChannel
from koboshi.cli.main import main
from koboshi.domain.ids import EntryId
from koboshi.domain.inbox import EntryState
from koboshi.ports.channel import Accept, Inbound, Receipt
from tests.faults.short_run import Doctored

honest_receive = WebChannel.receive


async def lying_receive(channel: WebChannel, cursor: str | None, accept: Accept) -> None:
    """Serve, and say of everything that it is stored."""
    async with create_task_group() as tasks:

        async def lie(batch: list[Inbound], cursor: str | None = None) -> tuple[Receipt, ...]:
            tasks.start_soon(accept, batch, cursor)
            made_up = Receipt(entry_id=EntryId(1), state=EntryState.ATTACHED, is_duplicate=False)
            return tuple(made_up for _ in batch)

        await honest_receive(channel, cursor, lie)  # type: ignore[arg-type]


if __name__ == "__main__":
    match sys.argv.pop(1):
        case "lies":
            WebChannel.receive = lying_receive  # type: ignore[assignment,method-assign]
        case "forgets":
            Doctored(synchronous="OFF").prepare()
        case what:
            raise SystemExit(f"nobody does {what!r}")
    main()
