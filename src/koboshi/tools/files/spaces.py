"""Which files exist for the tools in one session: those that its commands see."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from koboshi.boundary.enclosure import Enclosure, make_folders
from koboshi.domain.ids import shown
from koboshi.ports.tool import ToolContext
from koboshi.tools.files.places import FilePlaces, PathRefused, words_for

PlacesOf: TypeAlias = Callable[[ToolContext], FilePlaces]
"""The files of a session. Looks at the disk: it is called beside the event loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPlaces:
    """The files of each session, inside the boundary that stands around its commands."""

    on_host: FilePlaces
    enclosure: Enclosure

    def __call__(self, context: ToolContext) -> FilePlaces:
        """Raises PathRefused if its home or temporary folder cannot be made."""
        view = self.enclosure.view_of(shown("session", context.claim.session_id))
        if view is None:
            return self.on_host
        try:
            make_folders(view)
        except OSError as error:
            raise PathRefused(f"the folders of the sandbox {words_for(error)}") from error
        return replace(self.on_host, view=view)
