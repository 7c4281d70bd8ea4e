"""What the arguments of the file tools have in common."""

from typing import Annotated, TypeAlias

from msgspec import Meta

PathText: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=4_096, description="Relative to the working folder.")
]


def refuse_nul(**texts: str) -> None:
    """Raises ValueError for what cannot be part of a name."""
    for name, text in texts.items():
        if "\0" in text:
            raise ValueError(f"`{name}` cannot hold a NUL")
