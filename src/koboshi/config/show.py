"""A configuration as a person may see it, and the secrets to hide."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from koboshi.config.platforms import ChannelConfig
from koboshi.config.problems import escaped
from koboshi.config.rules import NamedSecrets
from koboshi.config.secret import Secret
from koboshi.config.sections import Config, McpConfig
from koboshi.config.values import keys_of

_UNSET = "(not set)"
# Not every variable of a server is a secret: one that says "production" must not blank the log.
_SECRET_VARIABLE = re.compile(r"(?i)token|key|secret|passw|credential|auth|cookie|(?<![a-z])pat$")
_PASSWORD_IN_QUERY = re.compile(r"(?<=[?&])((?:ssl)?password=)([^&#]+)")


def describe(config: Config) -> list[tuple[str, str, str]]:
    """Every key with its value and where it was written, for `koboshi config show`.

    Secrets and passwords are masked.
    """
    sources = config.sources
    rows = [("home", escaped(str(config.home)), ""), ("config", _value(config.file), "")]
    for key, value in _keys(config):
        rows.append((key, _value(value), sources.get(key, "default")))
    return rows


def secrets_of(config: Config) -> tuple[str, ...]:
    """Every secret text the configuration holds, for the log to redact."""
    held = [secret for channel in config.channels for secret in channel.secrets]
    keys = [model.api_key for model in config.links]
    known = [secret.reveal() for secret in (*keys, *held) if secret]
    for server in config.mcp:
        known.extend(_secrets_of_server(server))
    for agent in config.agents:
        known.extend(_secret_variables((*agent.env, *agent.passed)))
    free = [settings for _, settings in config.tools.settings]
    free += [channel.free_table for channel in config.channels if channel.free_table]
    for settings in free:
        known.extend(_secrets_of_plugin(json.loads(settings.reveal())))
    for _, value in _keys(config):
        if isinstance(value, str):
            known.extend(passwords_in(value))
    return tuple(dict.fromkeys(known))


def is_secret_variable(name: str) -> bool:
    """Whether what a variable holds is probably a secret, going by its name."""
    return _SECRET_VARIABLE.search(name) is not None


def section_of(channel: ChannelConfig) -> str:
    """The section of a channel: "channels.telegram.main" for "telegram:main"."""
    return channel.section


def passwords_in(url: str) -> tuple[str, ...]:
    """The passwords in an address, as written and as meant; empty for any other text."""
    if "://" not in url:
        return ()
    password = _password_of(url)
    found = [password] if password else []
    found.extend(match[2] for match in _PASSWORD_IN_QUERY.finditer(url))
    return tuple(dict.fromkeys(text for raw in found for text in (raw, unquote(raw))))


def _secrets_of_server(server: McpConfig) -> Iterator[str]:
    if server.token is not None:
        yield server.token.reveal()
    for _, secret in server.headers:
        yield secret.reveal()
    yield from _secret_variables((*server.env, *server.passed))


def _secret_variables(given: NamedSecrets) -> Iterator[str]:
    return (secret.reveal() for name, secret in given if is_secret_variable(name))


def _secrets_of_plugin(settings: Mapping[str, object]) -> Iterator[str]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _secrets_of_plugin(value)
        elif isinstance(value, str) and is_secret_variable(name) and value:
            yield value


def _keys(config: Config) -> Iterator[tuple[str, object]]:
    sections = {
        "gateway": config.gateway,
        "model": config.model,
        **{f"models.{link.name}": link for link in config.models},
        "budget": config.budget,
        "recovery": config.recovery,
        "tools": config.tools,
        "tools.terminal": config.tools.terminal,
        **{section_of(channel): channel for channel in config.channels},
        **{f"mcp.{server.name}": server for server in config.mcp},
        **{f"agents.{agent.name}": agent for agent in config.agents},
        "store": config.store,
        "retention": config.retention,
        "limits": config.limits,
    }
    for name, section in sections.items():
        for key in keys_of(type(section)):
            yield f"{name}.{key}", getattr(section, key)
        if section is config.model:
            yield "model.api_key", config.model.api_key


def _value(value: object) -> str:
    match value:
        case None:
            return _UNSET
        case Secret():
            return "***"
        case Path():
            return escaped(str(value))
        case str():
            return escaped(json.dumps(_masked(value), ensure_ascii=False))
        case tuple():
            listed = [f"{each[0]} = ***" if isinstance(each, tuple) else each for each in value]
            return escaped(json.dumps(listed, ensure_ascii=False))
        case _:
            return json.dumps(value)


def _masked(text: str) -> str:
    if not passwords_in(text):
        return text
    password = _password_of(text)
    if password:
        text = text.replace(f":{password}@", ":***@", 1)
    return _PASSWORD_IN_QUERY.sub(r"\1***", text)


def _password_of(url: str) -> str | None:
    try:
        return urlsplit(url).password
    except ValueError:
        return None
