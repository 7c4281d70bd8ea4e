"""Check the pages: links lead somewhere, examples can be read, commands and their options exist,
configurations can be used."""

import ast
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click

from koboshi.cli.main import main
from koboshi.config import ConfigError, load
from koboshi.config.platforms import PLATFORMS

ROOT = Path(__file__).resolve().parent.parent
PAGES = (*sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("*.md")))
OURS = {
    "budget",
    "channels",
    "gateway",
    "limits",
    "mcp",
    "memory",
    "model",
    "recovery",
    "retention",
    "store",
    "tools",
    "voice",
}
"""Sections that a configuration of ours may have."""
_LINK = re.compile(r"\[[^\]]*\]\((?!https?://)([^)\s#]*)(?:#([^)\s]+))?\)")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CALL = re.compile(r"(?:^|[\s/;])koboshi((?: +[^\s;|&)`]+)+)")
_COMMAND = re.compile(r"(?:^|[\s/;])koboshi((?: (?!koboshi)[a-z][a-z-]*)+)")


def problems() -> Iterator[str]:
    """Everything that is wrong, one line each."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in (*_links(page, text), *_blocks(text), *_commands(text)):
            yield f"{page.relative_to(ROOT)}: {found}"


def anchors(page: Path) -> set[str]:
    """What a link into a page can name."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", title.lower()) for title in titles)
    return {title.strip().replace(" ", "-") for title in plain}


def _links(page: Path, text: str) -> Iterator[str]:
    for name, anchor in _LINK.findall(_BLOCK.sub("", text)):
        target = (page.parent / name).resolve() if name else page
        if not target.exists():
            yield f"there is no {name}"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            yield f"{name or 'this page'} has no #{anchor}"


def _blocks(text: str) -> Iterator[str]:
    for kind, body in _BLOCK.findall(text):
        try:
            _read(kind, body)
        except (SyntaxError, ValueError) as error:
            yield f"an example of {kind} cannot be read: {error}"


def _read(kind: str, body: str) -> None:
    """Raises SyntaxError or ValueError."""
    match kind:
        case "python":
            ast.parse(body)
        case "toml":
            _configure(tomllib.loads(body), body)
        case "json":
            json.loads(body)
        case "sh":
            done = subprocess.run(["bash", "-n"], input=body, text=True, capture_output=True)
            if done.returncode:
                raise ValueError(done.stderr.strip())
        case _:
            return


def _configure(found: dict[str, object], body: str) -> None:
    """A configuration of ours is loaded, with every secret that it names. Raises ValueError."""
    if not {*found} & OURS:
        return
    channels = found.get("channels", {})
    if isinstance(channels, dict) and {*channels} - {*PLATFORMS}:
        return  # the example of a plug-in, which is not installed here; a test runs it
    named = ["TELEGRAM_BOT_TOKEN", "SLACK_BOT_TOKEN", *re.findall(r'_env = "(\w+)"', body)]
    named += re.findall(r'env_vars = \["(\w+)"\]', body)
    with tempfile.TemporaryDirectory() as home:
        file = Path(home, "koboshi.toml")
        file.write_text(body, encoding="utf-8")
        file.chmod(0o600)
        try:
            load(Path(home), None, dict.fromkeys(named, "a-secret-for-an-example"))
        except ConfigError as error:
            raise ValueError(str(error)) from error


def _commands(text: str) -> Iterator[str]:
    """Commands in examples for the shell, and those quoted in a sentence."""
    shell = [body for kind, body in _BLOCK.findall(text) if kind == "sh"]
    quoted = re.findall(r"`(koboshi [^`\n]+)`", _BLOCK.sub("", text))
    for line in (line for block in (*shell, *quoted) for line in block.splitlines()):
        for words in _COMMAND.findall(line.partition("#")[0]):
            wrong = unknown(words.split())
            if wrong:
                yield f"there is no `koboshi {wrong}`"
        for words in _CALL.findall(line.partition("#")[0]):
            wrong = unknown_option(words.split())
            if wrong:
                yield f"there is no `koboshi {wrong}`"


def unknown(words: list[str]) -> str:
    """The beginning of a command that does not exist; empty if it does."""
    context = click.Context(main, info_name="koboshi")
    command: click.Command | None = main
    for number, word in enumerate(words, start=1):
        if not isinstance(command, click.Group):
            return ""
        command = command.get_command(context, word)
        if command is None:
            return " ".join(words[:number])
    return ""


def unknown_option(words: list[str]) -> str:
    """The command with the first option that it does not have; empty if it has all of them."""
    context = click.Context(main, info_name="koboshi")
    command: click.Command = main
    for number, word in enumerate(words):
        if word == "--":
            return ""
        if word.startswith("-"):
            known = {opt for each in command.params for opt in (*each.opts, *each.secondary_opts)}
            if word.partition("=")[0] not in {*known, "--help", "-h"}:
                return " ".join((*words[:number], word))
        elif isinstance(command, click.Group):
            command = command.get_command(context, word) or command
    return ""


if __name__ == "__main__":
    wrong = list(problems())
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)
