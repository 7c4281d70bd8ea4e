"""`/memory`: what is remembered, and how to take a change back. Pure."""

from koboshi.domain.command import Command, Response, SessionFacts
from koboshi.domain.memory import MemoryView, RemoveMemory, Shelf, UndoMemory
from koboshi.domain.phrases import excerpt

LINE_CHARS_MAX = 300
_HEADS = {Shelf.USER: "Of you:", Shelf.MEMORY: "My notes:"}
_GROUP_HEADS = {Shelf.USER: "Of the people here:", Shelf.MEMORY: "My notes:"}
_HELP = (
    "/memory undo takes the last change back; /memory remove n1 removes one. Or tell me what to "
    "remember, or to forget."
)


def memory(command: Command, facts: SessionFacts) -> Response:
    """`/memory`, `/memory undo`, `/memory remove n1`."""
    verb, _, rest = command.argument.strip().partition(" ")
    match verb.casefold():
        case "" | "list":
            return Response(reply=_listed(facts))
        case "undo" if not rest.strip():
            return Response(reply="", memory=UndoMemory())
        case "remove" if rest.strip():
            return Response(reply="", memory=RemoveMemory(which=rest.strip()))
        case _:
            return Response(reply=_HELP)


def _listed(facts: SessionFacts) -> str:
    view = facts.memory
    if view is None or not (view.entries or view.troubles):
        return (
            "I remember nothing of this chat beyond what was said in it. Tell me what to remember."
        )
    heads = _GROUP_HEADS if facts.is_group else _HEADS
    lines = [line for shelf in Shelf for line in _shelf(view, shelf, heads[shelf])]
    troubles = [f"Not taken over from a file that was edited: {each}." for each in view.troubles]
    return "\n".join([*lines, *troubles, _HELP])


def _shelf(view: MemoryView, shelf: Shelf, head: str) -> list[str]:
    found = [each for each in view.entries if each.shelf is shelf]
    if not found:
        return []
    return [head, *(f"{each.shown}: {excerpt(each.text, LINE_CHARS_MAX)}" for each in found)]
