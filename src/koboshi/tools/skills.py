"""The folder with skills: the owner writes them, and the agent reads them."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from koboshi.boundary.naming import true_path
from koboshi.boundary.view import is_below
from koboshi.domain.skill import NAME, SKILL_FILE, Skill, skill_of
from koboshi.domain.text import plain
from koboshi.tools.files.inside import open_folder

SKILLS_MAX = 200
HEAD_BYTES = 4_096
FILE_BYTES_MAX = 100_000
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFolder:
    folder: Path
    touchable: tuple[str, ...] = ()
    """Folders that programs of the agent may write: a link in one of them is not the owner's."""

    def all(self) -> tuple[Skill, ...]:
        try:
            names = sorted(name for name in os.listdir(self.folder) if NAME.fullmatch(name))
        except OSError:
            return ()
        heads = ((name, self._content(name, SKILL_FILE, HEAD_BYTES)) for name in names[:SKILLS_MAX])
        return tuple(skill_of(name, head) for name, head in heads if head is not None)

    def read(self, name: str, file: str) -> str | None:
        if not NAME.fullmatch(name):
            return None
        return self._content(name, file or SKILL_FILE, FILE_BYTES_MAX)

    def _content(self, name: str, file: str, bytes_max: int) -> str | None:
        """A file below the folder of a skill. The owner may link skills from elsewhere, but no name
        that the agent gives leads out of the one."""
        try:
            root = true_path(os.path.abspath(self.folder / name), self.touchable)
            path = None if root is None else true_path(os.path.join(root, file), self.touchable)
            if root is None or path is None or path == root or not is_below(path, root):
                return None
            descriptor = _opened(path)
        # What is no name at all is a ValueError.
        except (OSError, ValueError):
            return None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            return None
        with os.fdopen(descriptor, "rb") as opened:
            return plain(opened.read(bytes_max).decode("utf-8", "replace"))


def _opened(path: str) -> int:
    """The file with this path, which has no links in it any more. Raises OSError."""
    folder = open_folder(os.path.dirname(path))
    try:
        return os.open(os.path.basename(path), _READ, dir_fd=folder)
    finally:
        os.close(folder)
