"""What a turn is shown beside its conversation, looked for once and then fixed.

Everything that the model says in a turn rests on the same text. It is stored before the model is
first asked, if there is anything to show. A turn with a reply of the model and without such a text
was shown nothing, and is shown nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from anyio import to_thread

from koboshi.agent.recollection import shown_text, shown_to_agent
from koboshi.domain.action import BY_GATEWAY
from koboshi.domain.memory import MemoryLimits
from koboshi.domain.role import RoleStanding
from koboshi.domain.skill import Skill
from koboshi.domain.text import plain
from koboshi.domain.transcript import Reply
from koboshi.domain.turn import Claim
from koboshi.ports.memory import Memories
from koboshi.ports.skills import Skills
from koboshi.ports.store import Loaded
from koboshi.runtime.memory_files import MemoryFiles
from koboshi.runtime.readings import read_inside

CUT = "\n(cut here: the file is longer)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recollection:
    memories: Memories
    files: MemoryFiles
    limits: MemoryLimits
    workdir: Path
    skills: Skills
    may_use_skills: Callable[[RoleStanding], bool]
    context_files: tuple[str, ...] = ()
    """Files of the work folder that are shown, by name."""
    context_chars: int = 8_000
    """So much of each."""
    is_on: bool = True

    async def bring(self, claim: Claim, loaded: Loaded) -> Loaded:
        """The turn with what it is shown."""
        if loaded.shown is not None:
            return loaded
        seen = await self.memories.look(claim)
        if seen.text is not None:
            return replace(loaded, shown=seen.text)
        if any(_is_models(step.body) for step in loaded.steps):
            return replace(loaded, shown="")
        view = seen.memory if self.is_on else None
        if view is not None:
            view = await self.files.settle(view)
        skills, files = await to_thread.run_sync(self._beside, loaded.standing)
        text = shown_text(view, self.limits, skills, files)
        if text:
            text = await self.memories.show(claim, text, view)
        return replace(loaded, shown=text)

    async def for_agent(self, claim: Claim, *, is_begun: bool) -> str:
        """What a foreign agent is told of the memory. A turn that was begun without is told
        nothing later."""
        seen = await self.memories.look(claim)
        if seen.text is not None or is_begun or seen.memory is None or not self.is_on:
            return seen.text or ""
        view = await self.files.settle(seen.memory)
        text = shown_to_agent(view)
        return await self.memories.show(claim, text, view) if text else ""

    def _beside(
        self, standing: RoleStanding
    ) -> tuple[tuple[Skill, ...], tuple[tuple[str, str], ...]]:
        skills = self.skills.all() if self.may_use_skills(standing) else ()
        found = ((name, self._read(standing, name)) for name in self.context_files)
        return skills, tuple((name, content) for name, content in found if content.strip())

    def _read(self, standing: RoleStanding, name: str) -> str:
        path = f"{standing.folder}/{name}" if standing.folder else name
        raw = read_inside(self.workdir, path, 4 * self.context_chars + 4)
        content = plain((raw or b"").decode("utf-8", "replace"))
        is_whole = len(content) <= self.context_chars
        return content if is_whole else content[: self.context_chars] + CUT


def _is_models(body: object) -> bool:
    return isinstance(body, Reply) and body.model != BY_GATEWAY
