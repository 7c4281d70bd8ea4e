"""A program whose every change of a folder is seen, numbered, and made to be its last.

    python -m tests.harness.tracer FOLDER HOW NUMBER COMMAND…    kill it there, as strace would
    python -m tests.harness.tracer FOLDER count 0 COMMAND…       how many there are, on stderr

`HOW` is `before`, `after`, `torn` (a part of the write is carried out and then it is killed) or
`short` (a part of the write is carried out, and it goes on); the last two happen at the first write
from that number on. A write through memory that is mapped
is not a call and not seen: SQLite has that only in the `-shm` file, which is made anew at each
start.
"""

import errno
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from tests.harness import ptrace


class How(StrEnum):
    BEFORE = "before"
    AFTER = "after"
    TORN = "torn"
    SHORT = "short"
    LIED = "lied"
    """Done in part, and reported whole: no kernel does that. It tests whether a check would
    notice."""
    COUNT = "count"


KILLS = (How.BEFORE, How.AFTER, How.TORN)
PARTIAL = (How.TORN, How.SHORT, How.LIED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens at the change of that number."""

    how: How
    number: int

    def __str__(self) -> str:
        return f"{self.how}:{self.number}"


NOTHING = Fault(how=How.COUNT, number=0)


@dataclass(slots=True, kw_only=True)
class Change:
    """One call that changed the folder, or words in the ledger."""

    call: str
    path: str
    target: str = ""
    """The new name, of a rename."""
    offset: int = 0
    content: bytes = b""
    size: int = -1
    """The new length, where it is given; -1 where it is not."""
    is_new: bool = False


@dataclass(slots=True, kw_only=True)
class Traced:
    """What was seen of a program, up to its end."""

    changes: list[Change] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    """Every call that has a number, in order, whether it succeeded or not."""
    is_struck: bool = False
    """Whether the fault happened."""
    struck: str = ""
    """The call at which it happened, with the name of the file."""
    status: int = 0

    @property
    def seen(self) -> int:
        return len(self.calls)

    @property
    def exit_code(self) -> int:
        return os.waitstatus_to_exitcode(self.status)


def trace(
    program: Callable[[], None],
    folder: Path,
    *,
    fault: Fault = NOTHING,
    ledger: Path | None = None,
    keeps_contents: bool = False,
) -> Traced:
    """Run `program` in a process of its own and see its changes below `folder`.

    What it writes to `ledger` is among the changes, too, and has no number. Forks, so this process
    must have one thread only.
    """
    said, heard = os.pipe()
    child = os.fork()
    if child == 0:
        _become(program, said, heard)
    os.close(said)
    ptrace.seize(child)
    os.write(heard, b"!")
    os.close(heard)
    return _Tracer(child, folder, fault, ledger, keeps_contents).watch()


def _become(program: Callable[[], None], said: int, heard: int) -> None:
    code = 1
    try:
        os.close(heard)
        os.read(said, 1)
        os.close(said)
        ptrace.stop_before(ptrace.CALLS)
        program()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)


class _Tracer:
    def __init__(
        self, child: int, folder: Path, fault: Fault, ledger: Path | None, keeps_contents: bool
    ) -> None:
        self._child = child
        self._folder = str(folder)
        self._ledger = str(ledger) if ledger else None
        self._fault = fault
        self._keeps_contents = keeps_contents
        self._under_way: dict[int, tuple[Change, bool]] = {}
        """By thread, the change that it makes, and whether the program dies behind it."""
        self._lies: dict[int, int] = {}
        """By thread, how much it is told to have written."""
        self._traced = Traced()

    def watch(self) -> Traced:
        while True:
            try:
                thread, status = ptrace.wait()
            except ChildProcessError:
                return self._traced
            if not os.WIFSTOPPED(status):
                if thread == self._child:
                    self._traced.status = status
                continue
            self._look_at(thread, os.WSTOPSIG(status), status >> 16)

    def _look_at(self, thread: int, number: int, event: int) -> None:
        try:
            if event == ptrace.EVENT_SECCOMP:
                self._before(thread)
            elif number == ptrace.AT_EXIT:
                self._behind(thread)
            elif event == ptrace.EVENT_STOP and number != signal.SIGTRAP:
                ptrace.stay_stopped(thread)
            else:
                ptrace.go_on(thread, 0 if event else number)
        except (ProcessLookupError, FileNotFoundError):
            # It was killed during the look, and has no memory any more.
            ptrace.go_on(thread)

    def _before(self, thread: int) -> None:
        registers = ptrace.Registers(thread)
        change = _change_of(thread, registers)
        if change is None or not self._is_ours(change):
            ptrace.go_on(thread)
            return
        is_struck = dies = False
        if change.path != self._ledger:
            self._traced.calls.append(change.call)
            is_struck = self._is_due()
        if is_struck:
            is_struck, dies = self._strike(thread, registers, change)
        if not is_struck or self._fault.how is not How.BEFORE:
            self._under_way[thread] = (change, dies)
            ptrace.go_on_to_exit(thread)

    def _is_due(self) -> bool:
        """Only a write can be done in part: if this call is none, the next write is it."""
        late = self._traced.seen - self._fault.number
        if not self._fault.number or self._traced.is_struck:
            return False
        return late == 0 or (late > 0 and self._fault.how in PARTIAL)

    def _strike(
        self, thread: int, registers: ptrace.Registers, change: Change
    ) -> tuple[bool, bool]:
        """Whether the fault came to pass, and whether it is the end behind this call."""
        how = self._fault.how
        if how in PARTIAL:
            length = registers.arguments[2]
            if change.call not in ("write", "pwrite64") or length < 2:
                return False, False
            # Not at a sector: the header of a frame is torn as well as its page.
            registers.shorten(max(1, length * 5 // 8))
            if how is How.LIED:
                self._lies[thread] = length
        self._traced.is_struck = True
        self._traced.struck = f"{change.call} {Path(change.path).name}"
        if how is How.BEFORE:
            self._kill()
        return True, how in (How.AFTER, How.TORN)

    def _behind(self, thread: int) -> None:
        change, dies = self._under_way.pop(thread)
        registers = ptrace.Registers(thread)
        result = registers.result
        if thread in self._lies:
            registers.answer(self._lies.pop(thread))
        if result >= 0:
            self._note(thread, change, result)
        if dies:
            self._kill()
            return
        ptrace.go_on(thread)

    def _note(self, thread: int, change: Change, result: int) -> None:
        """Add what was done, if the trace is kept."""
        if not self._keeps_contents:
            return
        registers = ptrace.Registers(thread)
        descriptor, buffer, _, last = registers.arguments
        match change.call:
            case "write" | "pwrite64":
                change.content = _memory(thread, buffer, result)
                change.offset = last if change.call == "pwrite64" else _place(thread, descriptor)
                change.offset -= 0 if change.call == "pwrite64" else result
            case "open" | "openat" | "creat" if not change.is_new and change.size < 0:
                return
            case "writev" | "pwritev" | "pwritev2" | "sendfile" | "copy_file_range":
                raise NotImplementedError(f"{change.call} of {change.path} cannot be replayed")
            case _:
                pass
        self._traced.changes.append(change)

    def _is_ours(self, change: Change) -> bool:
        names = (change.path, change.target)
        return change.path == self._ledger or any(
            name == self._folder or name.startswith(f"{self._folder}/") for name in names
        )

    def _kill(self) -> None:
        os.kill(self._child, signal.SIGKILL)


def _change_of(thread: int, registers: ptrace.Registers) -> Change | None:
    """What the call is about to change; None if it changes nothing."""
    call = ptrace.NAMES[registers.call]
    first, second, third, fourth = registers.arguments
    match call:
        case "creat":
            return _opening(call, _named(thread, first), os.O_CREAT | os.O_TRUNC)
        case "open":
            return _opening(call, _named(thread, first), second) if _may_change(second) else None
        case "openat":
            named = _named(thread, second, first) if _may_change(third) else ""
            return _opening(call, named, third) if named else None
        case "rename" | "link":
            return Change(call=call, path=_named(thread, first), target=_named(thread, second))
        case "renameat" | "renameat2" | "linkat":
            target = _named(thread, fourth, third)
            return Change(call=call, path=_named(thread, second, first), target=target)
        case "unlinkat" | "mkdirat":
            return Change(call=call, path=_named(thread, second, first))
        case "unlink" | "mkdir" | "rmdir":
            return Change(call=call, path=_named(thread, first))
        case "truncate":
            return Change(call=call, path=_named(thread, first), size=second)
        case "ftruncate":
            return Change(call=call, path=_opened(thread, first), size=second)
        case "sendfile":
            return Change(call=call, path=_opened(thread, first))
        case "copy_file_range":
            return Change(call=call, path=_opened(thread, third))
        case _:
            return Change(call=call, path=_opened(thread, first))


def _may_change(mode: int) -> bool:
    return bool(mode & (os.O_CREAT | os.O_TRUNC))


def _opening(call: str, path: str, mode: int) -> Change | None:
    """An opening that makes a file or empties one."""
    empties, exists = bool(mode & os.O_TRUNC), os.path.exists(path)
    if not (mode & os.O_CREAT and not exists) and not (empties and exists):
        return None
    return Change(call=call, path=path, is_new=not exists, size=0 if empties else -1)


def _opened(thread: int, descriptor: int) -> str:
    try:
        return os.readlink(f"/proc/{thread}/fd/{descriptor}")
    except OSError:
        return ""


def _place(thread: int, descriptor: int) -> int:
    with open(f"/proc/{thread}/fdinfo/{descriptor}", encoding="ascii") as lines:
        return int(next(line for line in lines if line.startswith("pos:")).split()[1])


def _named(thread: int, address: int, folder: int = -100) -> str:
    """The full name of a file that a call names, with its folder resolved."""
    name = os.fsdecode(_memory(thread, address, os.pathconf("/", "PC_PATH_MAX")).split(b"\0")[0])
    is_here = folder in (-100, 2**32 - 100, 2**64 - 100)
    base = os.readlink(f"/proc/{thread}/cwd") if is_here else _opened(thread, folder)
    whole = os.path.join(base, name).replace("/proc/self/", f"/proc/{thread}/", 1)
    return os.path.join(os.path.realpath(os.path.dirname(whole)), os.path.basename(whole))


def _memory(thread: int, address: int, length: int) -> bytes:
    """So many bytes from there, or as many as there are."""
    memory = os.open(f"/proc/{thread}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(memory, length, address)
    except OSError as error:
        if error.errno == errno.EIO:
            raise ProcessLookupError from error
        raise
    finally:
        os.close(memory)


def main(arguments: Sequence[str]) -> int:
    folder, how, number, *command = arguments
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)

    def become() -> None:
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.SIG_DFL)
        os.execvp(command[0], command)

    traced = trace(become, Path(folder), fault=Fault(how=How(how), number=int(number)))
    if how == How.COUNT:
        print("changes seen:", traced.seen, file=sys.stderr, flush=True)
    if os.WIFSIGNALED(traced.status):
        os.kill(os.getpid(), os.WTERMSIG(traced.status))
    return traced.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
