"""`koboshi agents`: agents of other makers: list, try, login."""

import signal
import sys
from pathlib import Path

import anyio
import click
import msgspec

from koboshi.cli.ask_owner import loaded, look, read_answer
from koboshi.cli.groups import ListGroup
from koboshi.cli.inspect import agent_line
from koboshi.cli.options import (
    FAILED,
    CommandFailure,
    failures_told,
    home_options,
    json_option,
    show_json,
)
from koboshi.clock import SystemClock
from koboshi.config.problems import escaped
from koboshi.control.replies import AgentStatus, StatusReply
from koboshi.control.requests import GetStatus

HELLO = "Answer with the single word: ready."


@click.group(cls=ListGroup)
def agents() -> None:
    """Agents of other makers, which speak the Agent Client Protocol (docs/agents.md)."""


@agents.command("list", short_help="Agents of the configuration, and those that live now.")
@home_options
@json_option
def list_agents(home: Path | None, config_file: Path | None, as_json: bool) -> None:
    """The agents of the configuration, which one answers, and which live now, with their memory."""
    with failures_told(as_json):
        config = loaded(home, config_file)
        living = _living(home, config_file)
        chosen = config.gateway.agent
        listed = [
            {
                "name": agent.name,
                "enabled": agent.enabled,
                "command": list(agent.command),
                "answers": agent.name == chosen,
                "living": [
                    msgspec.to_builtins(each) for each in living if each.agent == agent.name
                ],
            }
            for agent in config.agents
        ]
        if as_json:
            show_json({"agents": listed, "agent": chosen})
            return
        if not listed:
            click.echo("no agents are configured; docs/agents.md has recipes")
        for agent in config.agents:
            mark = "*" if agent.name == chosen else " "
            off = "" if agent.enabled else " (disabled)"
            click.echo(escaped(f"{mark} {agent.name}{off}: {' '.join(agent.command)}"))
            for each in living:
                if each.agent == agent.name:
                    click.echo(f"    {agent_line(each, SystemClock().now_ms())}")


def _living(home: Path | None, config_file: Path | None) -> tuple[AgentStatus, ...]:
    """The processes of agents, if a gateway runs that tells of them."""
    try:
        answer = look(home, config_file, GetStatus()).answer
        return read_answer(answer, StatusReply).agents
    except CommandFailure:
        return ()  # there is no home yet


@agents.command("try", short_help="Start the agent NAME and ask it one thing.")
@click.argument("name")
@click.option("--prompt", default=HELLO, help="What it is asked; empty: nothing.")
@home_options
def try_one(name: str, prompt: str, home: Path | None, config_file: Path | None) -> None:
    """Start the agent NAME in its boundary, print what it can do, and ask it one thing."""
    from koboshi.app.agent_trial import TrialFailed, try_agent

    with failures_told(False):
        config = loaded(home, config_file, needs_secrets=True)

        async def run() -> None:
            await try_agent(config, name, prompt, lambda words: click.echo(escaped(words)))

        signal.signal(signal.SIGTERM, signal.default_int_handler)  # the agent is ended then, too

        try:
            anyio.run(run)
        except TrialFailed as error:
            raise CommandFailure(FAILED, "agent", str(error)) from error


@agents.command(
    context_settings={"ignore_unknown_options": True},
    short_help="Log in with COMMAND where the agent NAME runs.",
)
@click.argument("name")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@home_options
def login(name: str, command: tuple[str, ...], home: Path | None, config_file: Path | None) -> None:
    """Run COMMAND in the boundary and the home of the agent NAME, at this terminal: its login.

    Write `--` before a command that has options of its own.
    """
    from koboshi.app.agent_trial import TrialFailed, run_inside

    with failures_told(False):
        try:
            code = run_inside(loaded(home, config_file, needs_secrets=True), name, command)
        except TrialFailed as error:
            raise CommandFailure(FAILED, "agent", str(error)) from error
    sys.exit(code)
