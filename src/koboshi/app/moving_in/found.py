"""What was found in the home of another gateway, in our words."""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from koboshi.domain.errors import KoboshiError
from koboshi.domain.ids import ChannelName
from koboshi.domain.incoming import IncomingSchedule, Newcomer
from koboshi.domain.memory import Shelf
from koboshi.domain.memory_elsewhere import texts_elsewhere
from koboshi.domain.role import Role
from koboshi.domain.skill import NAME
from koboshi.domain.talk_elsewhere import FILE_BYTES_MAX as FILE_BYTES_MAX_OF_TALK
from koboshi.domain.talk_elsewhere import SaidElsewhere

ROUTER = "https://openrouter.ai/api/v1"
FILE_BYTES_MAX = 1_000_000
SAME_MAX = 50
"""So many messages are looked at for one that is there twice, as after a summary."""
SERVER_CHARS_MAX = 28
SKILL_CHARS_MAX = 60
_OTHER_LETTERS = re.compile(r"[^A-Za-z0-9._-]+")
_ID = {
    "telegram": re.compile(r"[1-9][0-9]{0,18}"),
    "discord": re.compile(r"[1-9][0-9]{5,24}"),
    "slack": re.compile(r"[UW][A-Z0-9]{2,30}"),
    "matrix": re.compile(r"@[^:\s]{1,200}:[^\s]{1,200}"),
}
_DIRECT = {
    "anthropic": ("anthropic", "ANTHROPIC_API_KEY"),
    "openai": ("openai", "OPENAI_API_KEY"),
    "google": ("google", "GOOGLE_API_KEY"),
    "gemini": ("google", "GOOGLE_API_KEY"),
    "ollama": ("ollama", ""),
}


class NotMovable(KoboshiError):
    """The other home cannot be moved in now; the words say why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundChannel:
    platform: str
    secrets: Mapping[str, str] = field(repr=False)
    """By our own names: token, app_token."""
    keys: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> ChannelName:
        return ChannelName(f"{self.platform}:main")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundModel:
    name: str
    base_url: str = ""
    key_env: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundServer:
    name: str
    is_enabled: bool
    command: str = ""
    args: tuple[str, ...] = ()
    url: str = ""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(slots=True, kw_only=True)
class OtherHome:
    source: str
    folder: Path
    model: FoundModel | None = None
    prompt: str = ""
    variables: dict[str, str] = field(default_factory=dict, repr=False)
    """Keys of models, for the environment of the gateway."""
    channels: list[FoundChannel] = field(default_factory=list)
    people: list[Newcomer] = field(default_factory=list)
    servers: list[FoundServer] = field(default_factory=list)
    schedules: list[IncomingSchedule] = field(default_factory=list)
    orders: list[tuple[str, str, str]] = field(default_factory=list)
    """Of every schedule: its key, words and times."""
    homeless: list[IncomingSchedule] = field(default_factory=list)
    """Schedules that name no chat: they go to the owner, if one is named."""
    copies: list[tuple[Path, str]] = field(default_factory=list)
    """Files and folders of theirs, and where in our home a copy goes."""
    memory: list[tuple[Shelf, str]] = field(default_factory=list, repr=False)
    """What it remembers, entry by entry."""
    memory_files: list[tuple[Path, int]] = field(default_factory=list)
    """Where it was read, and how many entries there were."""
    talks: dict[tuple[ChannelName, str], list[SaidElsewhere]] = field(
        default_factory=dict, repr=False
    )
    """What was said in private, newest first, by whose it is."""
    others_said: int = 0
    """Messages of groups and of other people."""
    older_said: int = 0
    """Messages for which there is no room."""
    left: list[tuple[str, str]] = field(default_factory=list)
    """What is not moved in, and why."""
    _room: dict[tuple[ChannelName, str], int] = field(default_factory=dict, init=False, repr=False)

    def leave(self, what: str, why: str) -> None:
        self.left.append((what, why))

    def let_in(self, platform: str, person: object, name: str = "") -> None:
        """A person by a stable id; names are no ids."""
        known = str(person).strip().removeprefix(f"{platform}:")
        if platform not in _ID or not any(each.platform == platform for each in self.channels):
            self.leave(f"{platform} {known}", "there is no such channel here")
        elif not _ID[platform].fullmatch(known):
            self.leave(f"{platform} {known}", "it is no stable id of a person")
        else:
            channel = ChannelName(f"{platform}:main")
            if all((each.channel, each.person) != (channel, known) for each in self.people):
                self.people.append(Newcomer(channel=channel, person=known, name=name[:200]))

    def hear(self, whose: tuple[ChannelName, str], said: SaidElsewhere) -> None:
        """A message of theirs; once. The oldest ones are left out where there are too many."""
        talk = self.talks.setdefault(whose, [])
        if said in talk[-SAME_MAX:]:
            return
        room = self._room.get(whose, FILE_BYTES_MAX_OF_TALK) - said.cost
        if room < 0:
            self.older_said += 1
            return
        self._room[whose] = room
        talk.append(said)

    def leave_talks(self) -> None:
        """Say which conversations stay."""
        if self.others_said:
            what = f"{self.others_said} messages in groups, and of other people"
            self.leave(f"conversations: {what}", "each person gets their own alone")
        if self.older_said:
            self.leave(f"conversations: the {self.older_said} oldest messages", "too much to keep")

    def name_owner(self, owner: Newcomer | None) -> None:
        """Make the person the owner, who gets what names no chat where a private chat has the id
        of its person."""
        self.people = [
            replace(each, role=Role.OWNER) if each == owner else each for each in self.people
        ]
        for each in self.homeless:
            if owner is not None and owner.channel.startswith("telegram:"):
                person = owner.person
                self.schedules.append(
                    replace(each, channel=owner.channel, chat=person, person=person)
                )
            else:
                self.leave(f"schedule {each.order.name}", "it names no chat; order it anew")
        self.homeless = []

    def take_skills(self, folder: Path) -> None:
        """Every folder with a SKILL.md, however deep; a name counts once."""
        taken = {target for _, target in self.copies}
        for file in sorted(folder.glob("**/SKILL.md")):
            name = file.parent.name
            target = f"skills/{name}"
            if not NAME.fullmatch(name):
                own = _OTHER_LETTERS.sub("-", name).strip("-._")[:SKILL_CHARS_MAX] or "skill"
                target = unused(f"skills/{own}", taken)
            if file.is_symlink() or file.parent.is_symlink():
                self.leave(f"skill {file.parent.name}", "it is a link to another place")
            elif target in taken:
                self.leave(f"skill {file.parent}", "another one has the same name")
            else:
                taken.add(target)
                self.copies.append((file.parent, target))

    def take_servers(self, tables: Mapping[str, object]) -> None:
        """MCP servers. Two of them may have one name in our letters: then they are counted."""
        for name, table in tables.items():
            server = server_of(str(name), table_in(table))
            if server is None:
                self.leave(f"MCP server {name}", "it has neither a command nor an address")
                continue
            # A tool is called by the name of its server, where both signs are one.
            taken = {each.name.replace("_", "-") for each in self.servers}
            if server.name.replace("_", "-") in taken:
                server = replace(server, name=unused(server.name.replace("_", "-"), taken))
            self.servers.append(server)

    def take_memory(self, folder: Path) -> None:
        """What is remembered in the files of a folder. One that cannot be read stays."""
        for shelf in Shelf:
            file = folder / shelf.file
            if file.is_symlink():
                self.leave(str(file), "it is a link to another place")
                continue
            try:
                texts = texts_elsewhere(read_text(file))
            except NotMovable as error:
                self.leave(str(file), str(error))
                continue
            if texts:
                self.memory += [(shelf, words) for words in texts]
                self.memory_files.append((file, len(texts)))


def model_of(provider: str, name: str, base_url: str, key_env: str = "") -> FoundModel | None:
    """The model in our words; None if we do not know such a provider."""
    if base_url:
        return FoundModel(name=f"openai:{name}", base_url=base_url.rstrip("/"), key_env=key_env)
    if provider == "openrouter":
        return FoundModel(name=f"openai:{name}", base_url=ROUTER, key_env="OPENROUTER_API_KEY")
    if provider not in _DIRECT:
        return None
    prefix, variable = _DIRECT[provider]
    return FoundModel(name=f"{prefix}:{name}", key_env=variable)


def server_of(name: str, table: Mapping[str, object]) -> FoundServer | None:
    """An MCP server; None if it is neither started nor called."""
    command, url = table.get("command"), table.get("url")
    if not isinstance(command, str) and not isinstance(url, str):
        return None
    return FoundServer(
        name=_server_name(name),
        is_enabled=table.get("enabled", True) is not False,
        command=command if isinstance(command, str) else "",
        args=tuple(str(each) for each in list_in(table, "args")),
        url=url if isinstance(url, str) and not isinstance(command, str) else "",
        env=texts_in(table, "env"),
        headers=texts_in(table, "headers"),
    )


def _server_name(name: str) -> str:
    """Of lower case letters and digits, with single signs between them."""
    words = re.sub(r"[^a-z0-9_-]+|[_-]{2,}", "-", name.lower())
    return re.sub(r"-{2,}", "-", words)[:SERVER_CHARS_MAX].strip("-_") or "server"


def unused(name: str, taken: Collection[str]) -> str:
    """The name, or with a number if another one has it."""
    numbered = (f"{name}-{number}" for number in range(2, len(taken) + 3))
    return next(each for each in (name, *numbered) if each not in taken)


def read_text(file: Path) -> str:
    """The text of a small file; empty if it is not there. Raises NotMovable."""
    try:
        if file.stat().st_size > FILE_BYTES_MAX:
            raise NotMovable(f"{file} is too large")
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise NotMovable(f"{file} cannot be read: {error}") from error


def read_json(file: Path) -> object:
    """Raises NotMovable."""
    return json_of(read_text(file), str(file))


def json_of(words: str, what: str) -> object:
    """Raises NotMovable."""
    try:
        return json.loads(words) if words.strip() else {}
    except (ValueError, RecursionError) as error:
        raise NotMovable(f"{what} is not JSON: {error}") from error


def table_in(tree: object, *path: str) -> Mapping[str, object]:
    for name in path:
        tree = tree.get(name) if isinstance(tree, Mapping) else None
    return tree if isinstance(tree, Mapping) else {}


def list_in(tree: object, *path: str) -> Iterable[object]:
    found = table_in(tree, *path[:-1]).get(path[-1])
    return found if isinstance(found, list) else ()


def text_in(tree: object, *path: str) -> str:
    found = table_in(tree, *path[:-1]).get(path[-1])
    return found if isinstance(found, str) else ""


def texts_in(tree: object, *path: str) -> dict[str, str]:
    return {str(name): str(value) for name, value in table_in(tree, *path).items()}


def is_alive(pid: object, word: str) -> bool:
    """Whether such a process lives and is a program of that name."""
    if not isinstance(pid, int) or pid <= 1:
        return False
    try:
        return word in Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return False
