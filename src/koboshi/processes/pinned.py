"""The program of the runners, read once when this process begins.

An upgrade may replace our files while we run. A runner of another version might read our spec in
another way, and write records that we do not understand. So each is given the program that belongs
to us, compiled, in an open file without a name.
"""

import importlib.abc
import importlib.util
import marshal
import os
import tempfile
from typing import Final

PARTS = tuple(
    """
    koboshi.runner.log koboshi.runner.memory koboshi.runner.reaper koboshi.runner.tree
    koboshi.runner.landlock koboshi.runner.cgroup koboshi.runner.spec koboshi.runner.sandbox
    koboshi.runner.wires
    koboshi.runner.command koboshi.runner.keeper koboshi.runner.program koboshi.runner.nursery
    """.split()
)
"""The modules of the runner, each after those that it needs. They know each other by the last part
of their names. The last has `main`."""

PROGRAM_FILE = 3
"""Where the open file is in a runner that begins."""
LOADER_BYTES = 1_024
BEGIN: Final = (
    f"exec(__import__('posix').pread({PROGRAM_FILE}, {LOADER_BYTES}, 0))  # koboshi runner"
)
"""What the interpreter is told on its command line, which the list of processes shows."""

LOADER: Final = b"""
import marshal, posix, sys
size = posix.fstat(%d).st_size
magic, parts = marshal.loads(posix.pread(%d, size, %d))
is_same = magic == sys.modules["_frozen_importlib_external"].MAGIC_NUMBER
for name, code, source in parts:
    module = sys.modules[name] = type(sys)(name)
    exec(marshal.loads(code) if is_same else compile(source, name, "exec"), module.__dict__)
module.main(sys.argv[1])
""" % (PROGRAM_FILE, PROGRAM_FILE, LOADER_BYTES)
"""The interpreter may be replaced as well. One that does not know our compiled code compiles it."""

_MARSHAL_VERSION = 2
"""A form that every interpreter reads."""


def pinned_program() -> bytes:
    """The program as it is on the disk now. Raises ImportError if it is not there."""
    parts = tuple((name.rpartition(".")[2], *_part(name)) for name in PARTS)
    bundle = marshal.dumps((importlib.util.MAGIC_NUMBER, parts), _MARSHAL_VERSION)
    return LOADER.ljust(LOADER_BYTES) + bundle


def open_program(program: bytes) -> int:
    """An open file that holds the program, and has no name."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("koboshi-runner")
    else:
        with tempfile.TemporaryFile() as made:
            file = os.dup(made.fileno())
    try:
        rest = memoryview(program)
        while rest:
            rest = rest[os.write(file, rest) :]
    except OSError:
        os.close(file)
        raise
    return file


def _part(name: str) -> tuple[bytes, bytes]:
    """Code and source of a module, which is not run."""
    spec = importlib.util.find_spec(name)
    loader = None if spec is None else spec.loader
    if not isinstance(loader, importlib.abc.InspectLoader):
        raise ImportError(f"{name} is not there")
    code, source = loader.get_code(name), loader.get_source(name)
    if code is None or source is None:
        raise ImportError(f"{name} has no source")
    return marshal.dumps(code), source.encode()
