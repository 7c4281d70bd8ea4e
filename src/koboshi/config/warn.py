"""What is allowed and yet unwise, in sentences for the person who wrote it."""

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from koboshi.config.home_paths import is_open_to_others
from koboshi.config.problems import Origin
from koboshi.config.rules import is_loopback
from koboshi.config.sections import ChannelConfig, Config, TelegramConfig, WebConfig
from koboshi.config.show import is_secret_variable, passwords_in, section_of

_WEB_TOKEN_CHARS_MIN = 16


def warnings_about(config: Config, written: Mapping[str, Origin]) -> tuple[str, ...]:
    """One sentence for each unwise setting; `written` says where each set key stands."""
    return (
        *_secrets_in_the_file(config, written),
        *_plain_connections(config),
        *(sentence for channel in config.enabled_channels for sentence in _about(channel)),
    )


def _secrets_in_the_file(config: Config, written: Mapping[str, Origin]) -> Iterator[str]:
    passwords = ["model.base_url"] if passwords_in(config.model.base_url) else []
    tokens = [f"{section_of(channel)}.token" for channel in config.channels]
    tokens += [f"mcp.{server.name}.token" for server in config.mcp]
    for key in (*tokens, *passwords, *_secrets_of_servers(config)):
        origin = written.get(key)
        if origin is None or origin.file is None:
            continue
        is_open = is_open_to_others(origin.file)
        closing = ", which other users can read or write" if is_open else ""
        instead = "use token_env or token_file" if key in tokens else "set it by a variable"
        instead = "use env_vars" if key.endswith(".env") else instead
        yield f"{key} puts a secret into {origin}{closing}; {instead} instead"


def _secrets_of_servers(config: Config) -> Iterator[str]:
    for server in config.mcp:
        if any(is_secret_variable(name) for name, _ in server.env):
            yield f"mcp.{server.name}.env"
        if server.headers:
            yield f"mcp.{server.name}.headers"


def _plain_connections(config: Config) -> Iterator[str]:
    urls = {"model.base_url": config.model.base_url if config.model.api_key else ""}
    for channel in config.enabled_channels:
        if isinstance(channel, TelegramConfig):
            urls[f"{section_of(channel)}.api_base"] = channel.api_base
    for server in config.enabled_mcp:
        if server.token or server.headers:
            urls[f"mcp.{server.name}.url"] = server.url
    for key, url in urls.items():
        parts = urlsplit(url)
        if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            yield f"{key} is plain http: the secret crosses the network for everyone to read"


def _about(channel: ChannelConfig) -> Iterator[str]:
    match channel:
        case TelegramConfig(allow=allow) if "*" in allow:
            yield f'{section_of(channel)}.allow has "*": everyone may talk to the agent'
        case WebConfig(token=token) if token is not None:
            if len(token.reveal()) < _WEB_TOKEN_CHARS_MIN:
                yield (
                    f"{section_of(channel)} has a token of fewer than {_WEB_TOKEN_CHARS_MIN} "
                    "characters: it can be guessed"
                )
