"""The file tools of one gateway."""

from collections.abc import Callable, Iterable
from pathlib import Path

from koboshi.boundary.enclosure import ON_HOST, Enclosure
from koboshi.domain.ids import ChannelName
from koboshi.ports.tool import Tool
from koboshi.tools.asking import Asking
from koboshi.tools.files.beside import Beside
from koboshi.tools.files.changing import Changes, edit_tool, write_tool
from koboshi.tools.files.looking import list_tool, read_tool
from koboshi.tools.files.places import FilePlaces
from koboshi.tools.files.searching import search_tool
from koboshi.tools.files.sending import SendFileTool
from koboshi.tools.files.spaces import SessionPlaces


def file_tools(
    *,
    workdir: Path,
    home: Path,
    secrets: Iterable[Path] = (),
    sent_bytes_max: int = 50_000_000,
    takes_files: Callable[[ChannelName], bool] = lambda _: True,
    asking: Asking = Asking(),  # noqa: B008  (frozen)
    enclosure: Enclosure = ON_HOST,
) -> tuple[Tool, ...]:
    """Tools that see what commands see, and change what commands may change. On the host they read
    wherever the system allows, change files below `workdir`, and never open what is below `home`,
    the gateway's own folder, or what is in `secrets`. One sends them to people."""
    on_host = FilePlaces(
        workdir=str(workdir.absolute()),
        home=str(home.absolute()),
        secrets=tuple(str(each.absolute()) for each in secrets),
    )
    places = SessionPlaces(on_host=on_host, enclosure=enclosure)
    beside, changes = Beside(), Changes(places_of=places, on_host=on_host, asking=asking)
    return (
        read_tool(places, beside),
        write_tool(changes, beside),
        edit_tool(changes, beside),
        list_tool(places, beside),
        search_tool(places, beside),
        SendFileTool(
            places_of=places,
            beside=beside,
            home=home,
            bytes_max=sent_bytes_max,
            takes_files=takes_files,
        ),
    )
