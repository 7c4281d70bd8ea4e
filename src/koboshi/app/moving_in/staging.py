"""Files that move in: staged in one folder of the home, named by the transaction that counts, and
renamed to their places behind it. What a kill leaves is finished or removed by the next start."""

import hashlib
import json
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from koboshi.app.moving_in.found import NotMovable, OtherHome
from koboshi.app.moving_in.placing import CONFIG, STAGED, made
from koboshi.app.moving_in.remembering import memory_of, talk_files
from koboshi.app.moving_in.rendering import rendered, token_name
from koboshi.config import Config
from koboshi.domain.incoming import Incoming, StagedFile

ENVIRONMENT = "environment"
COPIED_BYTES_MAX = 500_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Baggage:
    """All that moves in, before anything is written."""

    incoming: Incoming
    texts: dict[str, str] = field(repr=False)
    """Files that we write, by their staged names."""
    copies: tuple[tuple[Path, str], ...] = ()
    config_name: str = CONFIG
    """What the configuration is called: another name if there is one already."""


def baggage_of(found: OtherHome, config: Config) -> Baggage:
    """Raises NotMovable."""
    home = config.home
    texts = {CONFIG: rendered(found, home)}
    for channel in found.channels:
        for secret, value in channel.secrets.items():
            texts[token_name(channel, secret)] = f"{value}\n"
    if wrong := [name for name, value in found.variables.items() if not value.isprintable()]:
        raise NotMovable(f"the key {', '.join(wrong)} has letters that no key has")
    if found.variables:
        lines = (f"{name}={value}\n" for name, value in sorted(found.variables.items()))
        texts[ENVIRONMENT] = "".join(lines)
    # Talk goes on every day: that there is more of it makes no other home.
    digest = _digest(found, texts)
    texts |= talk_files(found, config)
    config_name = free_name(home, CONFIG, found.source)
    names = {CONFIG: config_name, ENVIRONMENT: free_name(home, ENVIRONMENT, found.source)}
    files = [StagedFile(staged=name, target=names.get(name, name)) for name in texts]
    files += [StagedFile(staged=target, target=target) for _, target in found.copies]
    incoming = Incoming(
        digest=digest,
        source=found.source,
        people=tuple(found.people),
        schedules=tuple(found.schedules),
        files=tuple(files),
        memory=memory_of(found, config),
    )
    copies = tuple(found.copies)
    return Baggage(incoming=incoming, texts=texts, copies=copies, config_name=config_name)


def free_name(home: Path, name: str, source: str) -> str:
    return name if not os.path.lexists(home / name) else f"{name}.from-{source}"


def stage(home: Path, baggage: Baggage) -> None:
    """Write everything beside its place. All of it is on the disk when this returns."""
    folder = home / STAGED / baggage.incoming.digest
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    for name, text in baggage.texts.items():
        place = made(folder / name)
        opened = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(opened, "w", encoding="utf-8") as stream:
            stream.write(text)
    for source, target in baggage.copies:
        _copy(source, made(folder / target))
    os.sync()


def _copy(source: Path, target: Path) -> None:
    """A copy that only its owner can read. Links are left out: they lead to other places."""
    if source.is_file():
        shutil.copyfile(source, target, follow_symlinks=False)
    else:
        shutil.copytree(source, target, ignore=_links, copy_function=shutil.copyfile)
    for each in (target, *target.rglob("*")):
        each.chmod(0o700 if each.is_dir() else 0o600)


def _links(folder: str, names: list[str]) -> list[str]:
    return [
        name
        for name in names
        if (path := Path(folder, name)).is_symlink() or not (path.is_file() or path.is_dir())
    ]


def _digest(found: OtherHome, texts: dict[str, str]) -> str:
    """Of what moves in, not of where it goes: the same home again has the same one."""
    people = [(each.channel, each.person) for each in found.people]
    told = [found.source, people, found.orders, found.memory, sorted(texts.items())]
    whole = hashlib.sha256(json.dumps(told).encode())
    size = 0
    for source, target in found.copies:
        files = [source] if source.is_file() else sorted(source.rglob("*"))
        for file in (each for each in files if each.is_file() and not each.is_symlink()):
            size += file.stat().st_size
            if size > COPIED_BYTES_MAX:
                raise NotMovable(f"{file.parent} and the others are too large to copy")
            whole.update(f"{target}/{file.name}".encode())
            whole.update(file.read_bytes())
    return whole.hexdigest()[:32]
