"""`koboshi`: commands are imported when they are called, so that the quick ones stay quick."""

import gc
import io
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import click

from koboshi import __version__
from koboshi.cli.groups import NearGroup
from koboshi.cli.late_methods import make_methods_late

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

make_methods_late()  # before the modules of a command are loaded

_COMMANDS = {
    "run": ("koboshi.cli.run", "Run the gateway in the foreground."),
    "init": ("koboshi.cli.init.command", "Ask a few questions and write the configuration."),
    "chat": ("koboshi.cli.chat.command", "Talk to the agent from this terminal."),
    "open": ("koboshi.cli.open_page", "A link that opens the page in a browser."),
    "status": ("koboshi.cli.inspect", "What the gateway is doing."),
    "top": ("koboshi.cli.top", "What the gateway is doing, live."),
    "explain": ("koboshi.cli.explain", "Why a turn, message or delivery is where it is."),
    "trace": ("koboshi.cli.trace", "The way of a message: turn, calls, deliveries."),
    "sessions": ("koboshi.cli.rows.command", "Conversations: list, show."),
    "turns": ("koboshi.cli.rows.command", "Units of work: list, show, resume, drop."),
    "inbox": ("koboshi.cli.rows.command", "What arrived: list, show, retry, drop."),
    "outbox": ("koboshi.cli.rows.command", "Deliveries: list, show, retry, release, drop."),
    "processes": ("koboshi.cli.processes", "Background processes: list, show, log, kill."),
    "cron": ("koboshi.cli.cron", "What the agent does at set times: list, add, show, pause, …"),
    "memory": ("koboshi.cli.memory", "What the agent remembers: list, remove."),
    "goals": ("koboshi.cli.cron", "What the agent works on until it is done: list, pause, …"),
    "usage": ("koboshi.cli.usage", "What the models were used for, and what that cost."),
    "agents": ("koboshi.cli.agents", "Agents of other makers: list, try, login."),
    "people": ("koboshi.cli.people", "People with access: list, role, erase."),
    "pairing": ("koboshi.cli.pairing", "Requests for access: list, approve, deny, revoke."),
    "browsers": ("koboshi.cli.browsers", "Browsers that are logged in: list, revoke."),
    "rules": ("koboshi.cli.rules", "What people always allow: list, revoke."),
    "stop": ("koboshi.cli.shutdown", "Stop the gateway: what runs finishes its step first."),
    "restart": ("koboshi.cli.shutdown", "Stop the gateway and start it again."),
    "drain": ("koboshi.cli.shutdown", "Let the gateway finish what runs, then stop it."),
    "config": ("koboshi.cli.configuration", "Check or show the configuration."),
    "service": ("koboshi.cli.service.command", "Run the gateway under systemd or launchd."),
    "backup": ("koboshi.cli.backup", "Copies of the database: create, verify, list."),
    "restore": ("koboshi.cli.backup", "Replace the database with a backup."),
    "move": ("koboshi.cli.move", "Move everything to PostgreSQL, or back to the file."),
    "migrate": ("koboshi.cli.migrate", "Move the home of Hermes or OpenClaw in."),
    "update": ("koboshi.cli.update.command", "Another version; back by itself if it fails."),
    "doctor": ("koboshi.cli.doctor.command", "Look for what is wrong and say what to do."),
    "torture": (
        "koboshi.cli.torture",
        "Kill a throw-away gateway many times, and print the tally.",
    ),
    "logs": ("koboshi.cli.logs", "The gateway's log, wherever it is written."),
    "completion": ("koboshi.cli.completion", "What a shell needs to complete these commands."),
    "version": ("koboshi.cli.inspect", "The version of koboshi and what it runs on."),
}

_BRIEF = frozenset(
    {"status", "explain", "trace", "sessions", "turns", "inbox", "outbox", "version"}
)
"""What ends before there is garbage to collect: looking for some would take a tenth of the time.
`run` looks again once it serves (`app/serve.py`)."""


class LazyGroup(NearGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        if cmd_name in _BRIEF or cmd_name == "run":
            gc.disable()
        module, _ = _COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(module), cmd_name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """From the table alone: a person waits at a keyboard, and no command is needed yet."""
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        found = [(name, words) for name, (_, words) in _COMMANDS.items()]
        return [
            CompletionItem(name, help=words) for name, words in found if name.startswith(incomplete)
        ]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in _COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="koboshi", message="%(prog)s %(version)s")
def main() -> None:
    """A crash-safe gateway between people and AI agents."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a letter shows another one, and the command goes on.
            stream.reconfigure(errors="replace")
