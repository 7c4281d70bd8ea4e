"""`jot`: add a line to a notebook."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from koboshi.plugin import DeclaredTool, Effect, ToolContext, ToolFailed, ToolSetting, result_text


class JotArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    line: Annotated[str, Meta(min_length=1, max_length=500, description="What to write down.")]


def make_jot(setting: ToolSetting) -> DeclaredTool[JotArguments]:
    notebook = Path(setting.workdir, str(setting.settings.get("file", "notebook.txt")))

    async def jot(arguments: JotArguments, context: ToolContext) -> str:
        try:
            with notebook.open("a", encoding="utf-8") as file:
                file.write(f"{arguments.line}\n")
        except OSError as error:
            raise ToolFailed(f"{notebook.name} cannot be written: {error.strerror}") from error
        return result_text("ok", file=notebook.name)

    return DeclaredTool(
        name="jot",
        description="Add a line to the notebook.",
        takes=JotArguments,
        does=jot,
        effect=Effect.ONCE,
    )
