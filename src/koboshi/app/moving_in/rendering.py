"""What was found, as a configuration of ours and as a plan for a person. Pure."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from koboshi.app.moving_in.found import FoundChannel, FoundServer, OtherHome
from koboshi.domain.memory import Scope
from koboshi.domain.talk_elsewhere import FOLDER

TOKENS = "tokens"


def token_name(channel: FoundChannel, secret: str) -> str:
    """Where in the home a secret of a channel goes."""
    return f"{TOKENS}/{channel.platform}-main-{secret.replace('_', '-')}"


def rendered(found: OtherHome, home: Path) -> str:
    """The configuration. Secrets of channels are in files of their own."""
    return "\n".join(_lines(found, home)) + "\n"


def _lines(found: OtherHome, home: Path) -> Iterator[str]:
    yield f"# Moved in from {found.source}. `koboshi config show` tells what every key is set to."
    yield ""
    if found.model is not None or found.prompt:
        yield "[model]"
        if found.model is not None:
            yield f"name = {_quoted(found.model.name)}"
            if found.model.base_url:
                yield f"base_url = {_quoted(found.model.base_url)}"
            yield "# The variable that holds the key; a service reads <home>/environment."
            yield f"api_key_env = {_quoted(found.model.key_env)}"
        if found.prompt:
            yield f"system_prompt = {_quoted(found.prompt)}"
        yield ""
    yield "[channels.web.main]"
    yield "port = 8642"
    yield ""
    for channel in found.channels:
        yield f"[channels.{channel.platform}.main]"
        for key, value in channel.keys.items():
            yield f"{key} = {_quoted(value)}"
        for secret in channel.secrets:
            yield f"{secret}_file = {_quoted(str(home / token_name(channel, secret)))}"
        yield "# People who were let in before are members: `koboshi people list`."
        yield "allow = []"
        yield ""
    for server in found.servers:
        yield from _server(server)


def _server(server: FoundServer) -> Iterator[str]:
    yield f"[mcp.{server.name}]"
    yield f"enabled = {str(server.is_enabled).lower()}"
    if server.command:
        yield f"command = {_quoted(server.command)}"
        yield f"args = [{', '.join(map(_quoted, server.args))}]"
        if server.env:
            yield f"env = {_table(server.env.items())}"
    else:
        yield f"url = {_quoted(server.url)}"
        if server.headers:
            yield f"headers = {_table(server.headers.items())}"
    yield ""


def plan_lines(
    found: OtherHome, home: Path, config_name: str, scopes: Iterable[Scope]
) -> Iterator[tuple[str, str]]:
    """What goes where, in pairs. No secret is in it."""
    where = home / config_name
    if found.model is not None:
        yield f"model {found.model.name}", f"{where}, [model]"
    if found.prompt:
        yield f"system prompt ({len(found.prompt)} letters)", f"{where}, model.system_prompt"
    for variable in found.variables:
        yield f"the key {variable}", str(home / "environment")
    for channel in found.channels:
        yield f"channel {channel.platform}", f"{where}, [channels.{channel.platform}.main]"
        for secret in channel.secrets:
            yield f"its {secret.replace('_', ' ')}", str(home / token_name(channel, secret))
    for person in found.people:
        name = f" ({person.name})" if person.name else ""
        yield f"person {person.channel} {person.person}{name}", f"{person.role} of {person.channel}"
    for server in found.servers:
        state = "" if server.is_enabled else ", not enabled"
        yield f"MCP server {server.name}", f"{where}, [mcp.{server.name}]{state}"
    whose = ", ".join(map(str, scopes))
    for file, count in found.memory_files:
        entries = "1 entry" if count == 1 else f"{count} entries"
        yield f"{file} ({entries})", f"memory of {whose}"
    for (place, name), said in found.talks.items():
        messages = "1 message" if len(said) == 1 else f"{len(said)} messages"
        whom = f"{place} {name}" if place else "its own terminal and page"
        yield f"conversations of {whom} ({messages})", f"{home / FOLDER}, read by `recall` alone"
    for source, target in found.copies:
        yield str(source), str(home / target)
    for each in found.schedules:
        words = f"{each.order.kind} {each.order.expression}"
        yield f"schedule {each.order.name} ({words})", f"{each.channel} {each.chat}, paused"


def _quoted(text: str) -> str:
    # A string of JSON is one of TOML, too, as long as its letters are not escaped in pairs.
    words = json.dumps(text, ensure_ascii=False)
    return "".join(f"\\u{ord(each):04x}" if each == "\x7f" else each for each in words)


def _table(pairs: Iterable[tuple[str, str]]) -> str:
    return "{ " + ", ".join(f"{_quoted(name)} = {_quoted(value)}" for name, value in pairs) + " }"
