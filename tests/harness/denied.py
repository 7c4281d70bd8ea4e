"""Runs a program that may not make namespaces, use Landlock, set filters of system calls or ask how
a process ended: as in a container with Docker's usual profile, or on an old or a small kernel.

python -m tests.harness.denied namespaces[,landlock][,filters][,ends] program argument...

The system calls are refused by a filter of the kernel (seccomp), which children inherit.
"""

import ctypes
import os
import platform
import struct
import sys

LOAD, JUMP_EQUAL, JUMP_SET, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | 1  # EPERM
NO_SUCH_CALL = 0x00050000 | 38  # ENOSYS
NOT_FOR_THIS = 0x00050000 | 25  # ENOTTY
FIRST, SECOND = 16, 24
"""Where a filter finds the arguments of a call."""
NEW_NAMESPACES = 0x7E020000
"""Of `clone`: any of the namespaces."""
NUMBERS = {
    "x86_64": {
        "unshare": 272,
        "clone": 56,
        "clone3": 435,
        "setns": 308,
        "prctl": 157,
        "seccomp": 317,
        "ioctl": 16,
    },
    "aarch64": {
        "unshare": 97,
        "clone": 220,
        "clone3": 435,
        "setns": 268,
        "prctl": 167,
        "seccomp": 277,
        "ioctl": 29,
    },
}
LANDLOCK = 444
SET_FILTER = 22
"""Of `prctl`."""
PROCESS_INFO = 0xC040FF0B
"""Of `ioctl`."""


def main() -> None:
    denied, *program = sys.argv[1:]
    deny(denied.split(","))
    os.execvp(program[0], program)


def deny(what: list[str]) -> None:
    """Refuse it to this process and its children, for good."""
    numbers = NUMBERS[platform.machine()]
    code = [_step(LOAD, 0, 0, 0)]
    if "namespaces" in what:
        for name in ("unshare", "setns"):
            code += _refusing(numbers[name], REFUSE)
        # Its arguments are behind a pointer; without it, programs use `clone`.
        code += _refusing(numbers["clone3"], NO_SUCH_CALL)
        code += [
            _step(JUMP_EQUAL, 0, 4, numbers["clone"]),
            _step(LOAD, 0, 0, 16),
            _step(JUMP_SET, 0, 1, NEW_NAMESPACES),
            _step(RETURN, 0, 0, REFUSE),
            _step(RETURN, 0, 0, ALLOW),
        ]
    if "landlock" in what:
        code += _refusing(LANDLOCK, NO_SUCH_CALL)
    if "filters" in what:
        code += _refusing(numbers["seccomp"], REFUSE)
        code += _refusing_with(numbers["prctl"], FIRST, SET_FILTER, REFUSE)
    if "ends" in what:
        code += _refusing_with(numbers["ioctl"], SECOND, PROCESS_INFO, NOT_FOR_THIS)
    _install([*code, _step(RETURN, 0, 0, ALLOW)])


def _refusing(number: int, answer: int) -> list[bytes]:
    return [_step(JUMP_EQUAL, 0, 1, number), _step(RETURN, 0, 0, answer)]


def _refusing_with(number: int, place: int, value: int, answer: int) -> list[bytes]:
    """The call, if the argument at that place has the value."""
    return [
        _step(JUMP_EQUAL, 0, 4, number),
        _step(LOAD, 0, 0, place),
        _step(JUMP_EQUAL, 0, 1, value),
        _step(RETURN, 0, 0, answer),
        _step(RETURN, 0, 0, ALLOW),
    ]


def _step(code: int, if_true: int, if_false: int, value: int) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def _install(code: list[bytes]) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    steps = ctypes.create_string_buffer(b"".join(code))
    program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(steps))
    library.prctl(38, 1, 0, 0, 0)  # no new privileges
    if library.prctl(SET_FILTER, 2, ctypes.c_char_p(program), 0, 0):
        raise OSError(ctypes.get_errno(), "the filter was refused")


if __name__ == "__main__":
    main()
