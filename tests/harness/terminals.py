"""`terminal` on fake runners and rows, for tests of when it starts a command."""

import json

from koboshi.boundary.enclosure import ON_HOST
from koboshi.domain.ids import ProcessId
from koboshi.domain.process import Process
from koboshi.ports.runners import Runners
from koboshi.ports.store import Processes
from koboshi.ports.tool import ToolAnswer
from koboshi.tools.asking import Asking
from koboshi.tools.terminal import TerminalTool
from tests.fakes.commands import FakeClock, FakeProcesses, FakeRunners, ends_of
from tests.fakes.files import CONTEXT

P1 = ProcessId(1)


class Terminal:
    """The tool, with its runners and rows at hand."""

    def __init__(self, approval: str = "dangerous") -> None:
        self.clock = FakeClock()
        self.runners = FakeRunners()
        self.processes = FakeProcesses(self.clock)
        # Assigned by type: the fakes are held to the contracts.
        runners: Runners = self.runners
        processes: Processes = self.processes
        self.tool = TerminalTool(
            processes=processes,
            runners=runners,
            clock=self.clock,
            asking=Asking(approval=approval),
            workdir="/srv/agent",
            timeout_seconds=600,
            background_seconds=86_400,
            enclosure=ON_HOST,
            environment={"PATH": "/bin"},
            store_end=ends_of(self.processes, self.runners, self.clock).store,
        )

    async def begun(self, command: str = "make", *, background: bool = False) -> Process:
        """The row of a call that was under way when the gateway died."""
        return await self.processes.begin(
            CONTEXT.claim,
            CONTEXT.call_id,
            command=command,
            workdir="/srv/agent",
            is_foreground=not background,
        )

    async def run(self, **arguments: object) -> ToolAnswer:
        return await self.tool.run(json.dumps({"command": "make", **arguments}), CONTEXT)

    async def resume(self, **arguments: object) -> ToolAnswer:
        return await self.tool.resume(json.dumps({"command": "make", **arguments}), CONTEXT)

    def row(self) -> Process:
        return self.processes.rows[P1]
