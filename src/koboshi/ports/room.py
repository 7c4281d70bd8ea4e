"""The reserve kept for a full disk, as people may look at it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserve:
    kept_bytes: int
    """The reserve held now; 0 if it was given up, or never made."""
    wanted_bytes: int
    """The reserve intended for this volume."""
    free_bytes: int
    made_from_bytes: int
    """The free space required before it is made."""

    @property
    def has_room(self) -> bool:
        return self.free_bytes >= self.made_from_bytes
