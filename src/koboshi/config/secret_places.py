"""Where secrets of the configuration are: the files and the variables that hold them."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from koboshi.config.sections import Config

_ENDINGS = ("TOKEN", "KEY", "SECRET", "PASSWORD")


def secret_files_of(config: Config, environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Files that no tool may open: token files, the configuration, and what systemd hands over."""
    files = [file for channel in config.channels for file in channel.secret_files]
    files += [server.token_file for server in config.mcp if server.token_file is not None]
    credentials = environ.get("CREDENTIALS_DIRECTORY", "")
    return (
        *files,
        *([config.file] if config.file is not None else []),
        *([Path(credentials)] if credentials else []),
    )


def secret_variables_of(config: Config, names: Iterable[str]) -> frozenset[str]:
    """Those of the variables that hold a secret."""
    named = {variable for channel in config.channels for variable in channel.secret_variables}
    named |= {server.token_env for server in config.mcp}
    named |= {model.api_key_env for model in config.links}
    named |= {config.tools.web.search_key_env, config.voice.key_env}
    written = {name for name in names if name.startswith("KOBOSHI__") and name.endswith(_ENDINGS)}
    return frozenset((named & set(names)) | written)
