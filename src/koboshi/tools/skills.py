"""The folder with skills: the owner writes them, and the agent reads them."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from koboshi.domain.skill import NAME, SKILL_FILE, Skill, skill_of
from koboshi.domain.text import plain

SKILLS_MAX = 200
HEAD_BYTES = 4_096
FILE_BYTES_MAX = 100_000
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFolder:
    folder: Path

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
            root = (self.folder / name).resolve()
            path = (root / file).resolve()
            if not path.is_relative_to(root):
                return None
            descriptor = os.open(path, _READ)
        # Links in a circle are a RuntimeError; what is no name at all is a ValueError.
        except (OSError, RuntimeError, ValueError):
            return None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            return None
        with os.fdopen(descriptor, "rb") as opened:
            return plain(opened.read(bytes_max).decode("utf-8", "replace"))
