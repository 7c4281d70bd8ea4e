"""Landlock, the kernel's own rules for a process and its children, by system calls.

Imports nearly nothing: it is part of the runner, which applies it in the child that becomes the
command. There are no rules that forbid: what is *handled* is forbidden, except where it is granted.

Its rules for the network know TCP alone. Where there shall be no network, a filter of system calls
(seccomp) refuses to make a socket of any kind, and the one other way to have one. A pair of sockets
that lead to each other can be made. Sockets of other processes cannot be taken over: Landlock keeps
what it restricts from looking into processes outside.
"""

import errno
import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable
    from typing import Any

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
OPEN_AT = 437
HERE = -100
NO_LINKS = 4
VERSION = 1
PATH_BENEATH, NET_PORT = 1, 2
SET_NO_NEW_PRIVS = 38
ABI_MIN = 3
"""Below, a file that may not be written can still be emptied."""
ABI_OF_PORTS = 4
ABI_OF_SCOPES = 6

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
TRUNCATE = 1 << 14
ALL = (1 << 15) - 1
"""Every right of ABI 3: the first thirteen, moving between folders, and emptying."""
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE
READING = EXECUTE | READ_FILE | READ_DIR
BIND_TCP, CONNECT_TCP = 1, 2
SCOPE_ABSTRACT_SOCKETS, SCOPE_SIGNALS = 1, 2
DROP_FROM_BOUNDS = 24
CAPABILITIES = 64
CAPABILITY_VERSION = 0x20080522
SET_FILTER, BY_PROGRAM = 22, 2
SOCKET_CALLS = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
"""By machine: the name that the kernel has for it, and its number of `socket`."""
IO_RING_SETUP = 425
"""Rings make sockets past the filter. The number is the same on every machine."""
FOREIGN_CALLS = 0x40000000
"""From here on the numbers are those of another way to call (x32)."""
NARROW_SOCKET_CALLS = {"x86_64": (359, 102), "aarch64": (281, 281)}
"""The numbers of `socket` for programs of 32 bits; the second is one call for all of sockets."""
OLD_SOCKET = 1
"""What `socket` is called in that one."""
KEYRING_CALLS = {
    "x86_64": ((248, 250), (286, 288)),
    "aarch64": ((217, 219), (309, 311)),
}
"""The first and the last number of what is done with keys that the kernel holds; then those for
programs of 32 bits."""
CONTROL_CALLS = {"x86_64": (16, 54), "aarch64": (29, 54)}
"""The number of `ioctl`, and for programs of 32 bits."""
TYPE_INTO, SET_CONSOLE = 0x5412, 0x541C
"""What is asked of a terminal to have it read what no person typed."""
SMC_FAMILY, SMC, MPTCP = 43, 256, 262
"""Other ways to speak TCP. Landlock's rules for ports do not know them."""
NUMBER, MACHINE, FIRST, SECOND, THIRD = 0, 4, 16, 24, 32
"""Where a filter finds the number of a call, for which machine it is, and its arguments."""
LOAD, JUMP_EQUAL, JUMP_FROM, JUMP_ABOVE, ANSWER = 0x20, 0x15, 0x35, 0x25, 0x06
ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050001, 0x80000000
FOLDER = 0o040000
KIND = 0o170000
PORTS = 65_536


def version() -> int:
    """The ABI of this kernel; 0 where there is none, or it is switched off."""
    try:
        return max(0, Calls().call(CREATE_RULESET, None, 0, VERSION))
    except (ImportError, OSError):
        return 0


def restrict(grants: "Iterable[tuple[bytes, int]]", *, has_network: bool) -> None:
    """Leave this thread and all its children nothing of the file system but what is granted, as
    (path, rights). What does not exist is not granted, nor what a link leads to: paths were looked
    at before, and a link may have been put there since. Raises OSError."""
    calls = Calls()
    found = calls.call(CREATE_RULESET, None, 0, VERSION)
    if found < ABI_MIN:
        raise OSError(38, f"the kernel has Landlock {found}, and {ABI_MIN} is needed")
    is_cut_off = not has_network and found >= ABI_OF_PORTS
    scopes = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS if found >= ABI_OF_SCOPES else 0
    rules = calls.ruleset(found, ALL, BIND_TCP | CONNECT_TCP if is_cut_off else 0, scopes)
    for path, rights in grants:
        grant(calls, rules, path, rights)
    calls.prctl(SET_NO_NEW_PRIVS, 1)
    calls.call(RESTRICT_SELF, rules, 0)
    posix.close(rules)
    give_up_capabilities(calls)
    leave_owner(calls)
    if not has_network:
        calls.filter(no_sockets(posix.uname().machine))


def can_cut_off() -> bool:
    """Whether we know the calls of this machine by which sockets are made."""
    return posix.uname().machine in SOCKET_CALLS


def no_sockets(machine: str) -> bytes:
    """The program that refuses sockets, for the kernel to run at each system call. What calls it
    for another machine, in 32 bits, is killed: its numbers mean other things."""
    if machine not in SOCKET_CALLS:
        raise OSError(38, f"the network cannot be taken away on {machine}")
    name, socket = SOCKET_CALLS[machine]
    steps = (
        (LOAD, 0, 0, MACHINE),
        (JUMP_EQUAL, 1, 0, name),
        (ANSWER, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
        (JUMP_FROM, 2, 0, FOREIGN_CALLS),
        (JUMP_EQUAL, 1, 0, socket),
        (JUMP_EQUAL, 0, 1, IO_RING_SETUP),
        (ANSWER, 0, 0, REFUSE),
        (ANSWER, 0, 0, ALLOW),
    )
    return encoded(steps)


def only_plain_streams(machine: str) -> bytes:
    """The program that leaves TCP as the one way to serve on a port, for the kernel to run at each
    system call. Of programs of 32 bits it refuses the old call: its arguments cannot be seen."""
    name, socket = SOCKET_CALLS[machine]
    narrow, old = NARROW_SOCKET_CALLS[machine]
    return encoded(
        (
            (LOAD, 0, 0, MACHINE),
            (JUMP_EQUAL, 6, 0, name),
            (LOAD, 0, 0, NUMBER),
            (JUMP_EQUAL, 14, 0, IO_RING_SETUP),
            (JUMP_EQUAL, 7, 0, narrow),
            (JUMP_EQUAL, 0, 11, old),
            (LOAD, 0, 0, FIRST),
            (JUMP_EQUAL, 10, 9, OLD_SOCKET),
            (LOAD, 0, 0, NUMBER),
            (JUMP_FROM, 8, 0, FOREIGN_CALLS),
            (JUMP_EQUAL, 7, 0, IO_RING_SETUP),
            (JUMP_EQUAL, 0, 5, socket),
            (LOAD, 0, 0, FIRST),
            (JUMP_EQUAL, 4, 0, SMC_FAMILY),
            (LOAD, 0, 0, THIRD),
            (JUMP_EQUAL, 2, 0, SMC),
            (JUMP_EQUAL, 1, 0, MPTCP),
            (ANSWER, 0, 0, ALLOW),
            (ANSWER, 0, 0, REFUSE),
        )
    )


def encoded(steps: "Iterable[tuple[int, int, int, int]]") -> bytes:
    """Each step is a code, how many steps are left out if it holds and if not, and a value."""
    return b"".join(
        code.to_bytes(2, sys.byteorder)
        + bytes((if_true, if_false))
        + value.to_bytes(4, sys.byteorder)
        for code, if_true, if_false, value in steps
    )


def give_up_capabilities(calls: "Calls") -> None:
    """Leave this thread and its children no special right, as bubblewrap does. Landlock does not
    bind root's: with them one reads the environment of any process, or loads a module."""
    for right in range(CAPABILITIES):
        try:
            calls.prctl(DROP_FROM_BOUNDS, right)
        except OSError:
            break  # there is no such right, or none to give up
    calls.drop_capabilities()


def grant(calls: "Calls", rules: int, path: bytes, rights: int) -> None:
    try:
        file = calls.open_plain(path)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP):
            raise
        return
    try:
        if posix.fstat(file).st_mode & KIND != FOLDER:
            rights &= OF_FILES
        rule = rights.to_bytes(8, sys.byteorder) + file.to_bytes(4, sys.byteorder)
        calls.call(ADD_RULE, rules, PATH_BENEATH, rule, 0)
    finally:
        posix.close(file)


def deny_ports(ports: "Container[int]") -> bool:
    """Forbid this thread and all its children to listen on these ports, and to connect to them.
    False where the kernel cannot. It grants every other port, which takes some tenths of a second.
    Raises OSError."""
    calls = Calls()
    found = version()
    if found < ABI_OF_PORTS:
        return False
    rights = BIND_TCP | CONNECT_TCP
    rules = calls.ruleset(found, 0, rights, 0)
    allowed = rights.to_bytes(8, sys.byteorder)
    add, order = calls.system, sys.byteorder
    for port in range(PORTS):
        # Plain values: there are many of them, and each is small.
        rule = allowed + port.to_bytes(8, order)
        if port not in ports and add(ADD_RULE, rules, NET_PORT, rule, 0):
            raise OSError(calls.errno(), "the rule of a port was refused")
    calls.prctl(SET_NO_NEW_PRIVS, 1)
    calls.call(RESTRICT_SELF, rules, 0)
    posix.close(rules)
    if can_cut_off():
        calls.filter(only_plain_streams(posix.uname().machine))
    return True


def leave_host() -> None:
    """Give up for this thread and all its children what bubblewrap leaves of the machine: sockets
    that have a name and no path, which belong to the network that it shares, and were made outside;
    the keys that the kernel holds for a user, and their terminal. Raises OSError."""
    calls = Calls()
    found = version()
    calls.prctl(SET_NO_NEW_PRIVS, 1)
    if found >= ABI_OF_SCOPES:
        rules = calls.ruleset(found, 0, 0, SCOPE_ABSTRACT_SOCKETS)
        calls.call(RESTRICT_SELF, rules, 0)
        posix.close(rules)
    leave_owner(calls)


def leave_owner(calls: "Calls") -> None:
    """Forbid what reaches the person beside the boundary, where we know the calls: to use keys that
    the kernel holds for them, and to type into their terminal."""
    if posix.uname().machine in KEYRING_CALLS:
        calls.filter(no_keys(posix.uname().machine))


def no_keys(machine: str) -> bytes:
    """The program that refuses keyrings and false keystrokes, for the kernel to run at each system
    call."""
    (first, last), (narrow_first, narrow_last) = KEYRING_CALLS[machine]
    control, narrow_control = CONTROL_CALLS[machine]
    return encoded(
        (
            (LOAD, 0, 0, MACHINE),
            (JUMP_EQUAL, 4, 0, SOCKET_CALLS[machine][0]),
            (LOAD, 0, 0, NUMBER),
            (JUMP_EQUAL, 7, 0, narrow_control),
            (JUMP_FROM, 0, 10, narrow_first),
            (JUMP_ABOVE, 9, 8, narrow_last),
            (LOAD, 0, 0, NUMBER),
            (JUMP_FROM, 6, 0, FOREIGN_CALLS),
            (JUMP_EQUAL, 2, 0, control),
            (JUMP_FROM, 0, 5, first),
            (JUMP_ABOVE, 4, 3, last),
            (LOAD, 0, 0, SECOND),
            (JUMP_EQUAL, 1, 0, TYPE_INTO),
            (JUMP_EQUAL, 0, 1, SET_CONSOLE),
            (ANSWER, 0, 0, REFUSE),
            (ANSWER, 0, 0, ALLOW),
        )
    )


class Calls:
    """System calls. The package `ctypes` costs more than all the rest of the runner, so this uses
    what is below it."""

    def __init__(self) -> None:
        native = __import__("_ctypes")
        word = type("word", (native._SimpleCData,), {"_type_": "l"})
        text = type("text", (native._SimpleCData,), {"_type_": "z"})
        # What is declared as `int` is read as one: half of the register holds anything.
        short = type("short", (native._SimpleCData,), {"_type_": "i"})
        flags = native.FUNCFLAG_CDECL | native.FUNCFLAG_USE_ERRNO
        shapes = [{"_flags_": flags, "_restype_": each} for each in (word, short)]
        wide, function = (type("function", (native.CFuncPtr,), shape) for shape in shapes)
        library = native.dlopen(None, 0)
        self.word: Any = word
        self.text: Any = text
        self.errno: Any = native.get_errno
        self.system: Any = wide(native.dlsym(library, "syscall"))
        self.control: Any = function(native.dlsym(library, "prctl"))
        self.ask: Any = function(native.dlsym(library, "ioctl"))
        self.drop: Any = function(native.dlsym(library, "capset"))
        self.bound: Any = function(native.dlsym(library, "setrlimit"))
        self.native: Any = native

    def call(self, number: int, *said: "int | bytes | None") -> int:
        words = [self._native(each) for each in said]
        return self._checked(self.system(self.word(number), *words))

    def prctl(self, option: int, value: int) -> int:
        arguments = (option, value, 0, 0, 0)
        return self._checked(self.control(*(self.word(each) for each in arguments)))

    def limit(self, kind: int, most: int) -> None:
        """Set a limit of this process, for good."""
        record = most.to_bytes(8, sys.byteorder) * 2
        self._checked(self.bound(self.word(kind), self.text(record)))

    def drop_capabilities(self) -> None:
        """Whatever is in force, permitted or handed on."""
        header = CAPABILITY_VERSION.to_bytes(4, sys.byteorder) + bytes(4)
        self._checked(self.drop(self.text(header), self.text(bytes(24))))

    def open_plain(self, path: bytes) -> int:
        """A name for the file, to which no link leads."""
        how = (posix.O_PATH | posix.O_CLOEXEC, 0, NO_LINKS)
        record = b"".join(each.to_bytes(8, sys.byteorder) for each in how)
        return self.call(OPEN_AT, HERE, path, record, len(record))

    def filter(self, program: bytes) -> None:
        """Have the kernel run the program at each system call, for good. Raises OSError."""
        steps = self._record(program)
        address = self.native.addressof(steps)
        count = (len(program) // 8).to_bytes(8, sys.byteorder)
        described = self.text(count + address.to_bytes(8, sys.byteorder))
        if self.control(self.word(SET_FILTER), self.word(BY_PROGRAM), described) < 0:
            number = self.errno()
            why = f"no filter of system calls (seccomp) can be set: {posix.strerror(number)}"
            raise OSError(number, why)

    def filled(self, file: int, request: int, content: bytes) -> bytes:
        """What the kernel makes of a record, by `ioctl`."""
        record = self._record(content)
        self._checked(self.ask(self.word(file), self.word(request), self.native.byref(record)))
        return bytes(record)

    def ruleset(self, abi: int, files: int, network: int, scopes: int) -> int:
        attributes = b"".join(each.to_bytes(8, sys.byteorder) for each in (files, network, scopes))
        size = 24 if abi >= ABI_OF_SCOPES else 16 if abi >= ABI_OF_PORTS else 8
        return self.call(CREATE_RULESET, attributes[:size], size, 0)

    def _record(self, content: bytes) -> "Any":
        byte = type("byte", (self.native._SimpleCData,), {"_type_": "B"})
        shape = {"_type_": byte, "_length_": len(content)}
        return type("record", (self.native.Array,), shape)(*content)

    def _native(self, value: "int | bytes | None") -> "Any":
        return self.word(value) if isinstance(value, int) else self.text(value)

    def _checked(self, result: int) -> int:
        if result < 0:
            number = self.errno()
            raise OSError(number, posix.strerror(number))
        return int(result)
