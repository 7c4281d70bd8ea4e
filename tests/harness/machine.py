"""The machine of a user, for tests of the configuration."""

from pathlib import Path

import pytest

from koboshi.config import (
    Config,
    ConfigError,
    load,
)

TOKEN = "123456:canary-token-of-a-bot"


class Machine:
    """A user's machine: a home, a configuration file and an environment."""

    def __init__(self, folder: Path) -> None:
        self.user = folder / "user"
        self.home = self.user / ".koboshi"
        self.home.mkdir(parents=True)
        self.file = self.home / "koboshi.toml"
        self.environ = {"HOME": str(self.user)}

    def load(self, text: str | bytes | None = None, **environ: str) -> Config:
        if text is not None:
            self.file.write_bytes(text.encode() if isinstance(text, str) else text)
            self.file.chmod(0o600)
        return load(None, None, self.environ | environ)

    def complaints(self, text: str | bytes | None = None, **environ: str) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            self.load(text, **environ)
        assert caught.value.exit_code == 78
        assert len(str(caught.value).splitlines()) == len(caught.value.problems)
        return str(caught.value).splitlines()

    def secret_file(self, name: str, content: str | bytes = TOKEN, mode: int = 0o600) -> Path:
        path = self.home / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        path.chmod(mode)
        return path
