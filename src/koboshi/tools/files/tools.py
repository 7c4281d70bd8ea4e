"""The file tools of one gateway."""

from collections.abc import Callable
from pathlib import Path

from koboshi.domain.ids import ChannelName
from koboshi.ports.tool import Tool
from koboshi.tools.files.beside import Beside
from koboshi.tools.files.changing import Changes, edit_tool, write_tool
from koboshi.tools.files.looking import list_tool, read_tool
from koboshi.tools.files.places import FilePlaces
from koboshi.tools.files.searching import search_tool
from koboshi.tools.files.sending import SendFileTool


def file_tools(
    *,
    workdir: Path,
    home: Path,
    sent_bytes_max: int = 50_000_000,
    takes_files: Callable[[ChannelName], bool] = lambda _: True,
) -> tuple[Tool, ...]:
    """Tools that read wherever the system allows and change files below `workdir`, and that never
    open what is below `home`, the gateway's own folder. One sends them to people."""
    places = FilePlaces(workdir=str(workdir.absolute()), home=str(home.absolute()))
    beside, changes = Beside(), Changes(places=places)
    return (
        read_tool(places, beside),
        write_tool(changes, beside),
        edit_tool(changes, beside),
        list_tool(places, beside),
        search_tool(places, beside),
        SendFileTool(
            places=places,
            beside=beside,
            home=home,
            bytes_max=sent_bytes_max,
            takes_files=takes_files,
        ),
    )
