"""How a long answer is sent: as messages, or as its first ones and a file with the whole of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from koboshi.domain import phrases


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipment:
    parts: tuple[str, ...]
    has_file: bool = False
    """A file with the whole text goes along with the last part."""


def shipment_of(parts: Sequence[str], *, parts_max: int, takes_files: bool) -> Shipment:
    """The messages of a text that a channel takes in `parts`: never more than `parts_max`."""
    if len(parts) <= parts_max:
        return Shipment(parts=tuple(parts))
    shown, left = tuple(parts[: parts_max - 1]), "".join(parts[parts_max - 1 :])
    if takes_files:
        return Shipment(parts=(*shown, phrases.answer_in_file()), has_file=True)
    return Shipment(parts=(*shown, phrases.answer_cut(left)))
