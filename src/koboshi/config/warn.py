"""What is allowed and yet unwise, in sentences for the person who wrote it."""

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from koboshi.config.home_paths import is_open_to_others
from koboshi.config.problems import Origin
from koboshi.config.rules import is_loopback
from koboshi.config.sections import Config
from koboshi.config.show import is_secret_variable, passwords_in


def warnings_about(config: Config, written: Mapping[str, Origin]) -> tuple[str, ...]:
    """One sentence for each unwise setting; `written` says where each set key stands."""
    return (
        *_secrets_in_the_file(config, written),
        *_plain_connections(config),
        *(sentence for channel in config.enabled_channels for sentence in channel.warnings()),
    )


def _secrets_in_the_file(config: Config, written: Mapping[str, Origin]) -> Iterator[str]:
    urls = {"model.base_url": config.model.base_url}
    urls |= {f"models.{link.name}.base_url": link.base_url for link in config.models}
    passwords = [key for key, url in urls.items() if passwords_in(url)]
    tokens = [
        f"{channel.section}.{name}" for channel in config.channels for name in channel.secret_names
    ]
    tokens += [f"mcp.{server.name}.token" for server in config.mcp]
    for key in (*tokens, *passwords, *_secrets_of_servers(config)):
        origin = written.get(key)
        if origin is None or origin.file is None:
            continue
        is_open = is_open_to_others(origin.file)
        closing = ", which other users can read or write" if is_open else ""
        name = key.rpartition(".")[2]
        instead = f"use {name}_env or {name}_file" if key in tokens else "set it by a variable"
        instead = "use env_vars" if key.endswith(".env") else instead
        yield f"{key} puts a secret into {origin}{closing}; {instead} instead"


def _secrets_of_servers(config: Config) -> Iterator[str]:
    for server in config.mcp:
        if any(is_secret_variable(name) for name, _ in server.env):
            yield f"mcp.{server.name}.env"
        if server.headers:
            yield f"mcp.{server.name}.headers"
    for agent in config.agents:
        if any(is_secret_variable(name) for name, _ in agent.env):
            yield f"agents.{agent.name}.env"


def _plain_connections(config: Config) -> Iterator[str]:
    urls = {
        f"models.{model.section}.base_url" if model.section else "model.base_url": model.base_url
        for model in config.links
        if model.api_key
    }
    for channel in config.enabled_channels:
        urls |= {f"{channel.section}.{key}": url for key, url in channel.addresses.items()}
    for server in config.enabled_mcp:
        if server.token or server.headers:
            urls[f"mcp.{server.name}.url"] = server.url
    for key, url in urls.items():
        parts = urlsplit(url)
        if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            yield f"{key} is plain http: the secret crosses the network for everyone to read"
