"""Plants a hole into modules of the gateway as they are loaded: `PLANTED_HOLE` names them, with the
text that is replaced. Python loads this by itself where the folder is on `PYTHONPATH`, so a process
that a test starts has the hole, too."""

import json
import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

HOLE: dict[str, list[list[str]]] = json.loads(os.environ.get("PLANTED_HOLE", "{}"))


class Planting(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        """Compiled anew: what is cached has no hole."""
        text = self.get_data(self.path).decode()
        for sound, hole in HOLE[fullname]:
            assert sound in text, f"{fullname} does not say {sound!r}"
            text = text.replace(sound, hole)
        return compile(text, self.path, "exec")


class Planter(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Any = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in HOLE:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None
        assert spec.origin is not None
        spec.loader = Planting(fullname, spec.origin)
        return spec


if HOLE:
    sys.meta_path.insert(0, Planter())
