"""What the other gateway remembered: whose memory it becomes here."""

from koboshi.app.builders.control import memory_limits
from koboshi.app.moving_in.found import OtherHome
from koboshi.config import Config
from koboshi.domain.ids import ChannelName
from koboshi.domain.incoming import IncomingMemory
from koboshi.domain.memory import Scope, ScopeKind
from koboshi.domain.memory_elsewhere import NO_ROOM, fitting
from koboshi.domain.phrases import excerpt
from koboshi.domain.role import Role
from koboshi.domain.talk_elsewhere import file_of, lines_of

PAGE = ChannelName("web:main")


def pages_of(config: Config) -> list[ChannelName]:
    """Where the owner of this machine talks."""
    pages = [each.name for each in config.enabled_channels if each.name.startswith("web:")]
    return [ChannelName(name) for name in pages] or [PAGE]


def talk_files(found: OtherHome, config: Config) -> dict[str, str]:
    """What each person said there, as files of our home by their names."""
    files: dict[str, str] = {}
    for (channel, person), said in found.talks.items():
        for place in [channel] if channel else pages_of(config):
            files[file_of(found.source, place, person)] = lines_of(said)
    return files


def memory_of(found: OtherHome, config: Config) -> IncomingMemory:
    """It was the memory of one person, and becomes that of the owner: on the page, and where the
    person who is named as the owner writes. What does not fit into an empty memory is told."""
    if not found.memory:
        return IncomingMemory()
    places = [(name, "") for name in pages_of(config)]
    owners = [(each.channel, each.person) for each in found.people if each.role is Role.OWNER]
    if found.people and not owners:
        found.leave("the memory on other channels", "no owner is named, so only the page has it")
    for shelf, words in fitting(found.memory, memory_limits(config)).left:
        found.leave(f"{shelf.file}: «{excerpt(words, 60)}»", NO_ROOM)
    return IncomingMemory(
        texts=tuple(found.memory),
        scopes=tuple(
            Scope(channel=channel, kind=ScopeKind.PERSON, name=person)
            for channel, person in (*owners, *places)
        ),
    )
