"""A process that has the program of the runners loaded, and forks one on request. Imports nearly
nothing: it is part of the runner.

An interpreter takes longer to start than all that a runner does. A fork of one that waits takes a
tenth of that, and shares its memory. Each command still has a runner of its own, with the files,
the session and the lock that one started alone has; nothing passes between them.

Our file 0 is a socket. A request is the folder of a process, with three files: its lock, the pipe
that closes at its birth, and where its errors go. The answer is empty, with a descriptor of the new
process, or it is the number of the error for which there is none. When the socket ends, so do we;
runners stay.
"""

import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    import signal
    from typing import NoReturn

    from koboshi.runner import program, reaper
else:
    import _signal as signal

    program = __import__("program")
    reaper = __import__("reaper")

REQUEST_BYTES_MAX = 8_192
FILES = 3
INT_BYTES = 4


def main(folder: str) -> "NoReturn":
    """Be the runner of the process in the folder; without one, be a nursery."""
    if folder:
        program.main(folder)
    nurse()


def nurse() -> "NoReturn":
    native = __import__("_socket")
    asked: _socket.socket = native.socket(fileno=0)
    signal.signal(signal.SIGCHLD, lambda *_: reaper.reap())
    reaper.prepare()
    collector = __import__("gc")
    collector.collect()
    # What is there already is never looked through again: each look would copy it.
    collector.freeze()
    space = native.CMSG_SPACE(FILES * INT_BYTES)
    while True:
        said, given, _, _ = asked.recvmsg(REQUEST_BYTES_MAX, space)
        if not said:
            posix._exit(0)
        files = files_in(given[0][2]) if given else []
        answer(native, asked, said, files)
        for file in files:
            posix.close(file)


def files_in(content: bytes) -> "list[int]":
    places = range(0, len(content) - INT_BYTES + 1, INT_BYTES)
    return [int.from_bytes(content[at : at + INT_BYTES], sys.byteorder) for at in places]


def answer(native: object, asked: "_socket.socket", said: bytes, files: "list[int]") -> None:
    try:
        child = posix.fork()
    except OSError as error:
        asked.send(b"%d" % (error.errno or 0))
        return
    if child == 0:
        bear(said.decode("utf-8", "surrogateescape"), files)
    rights: list[tuple[int, int, bytes]] = []
    try:
        process = posix.pidfd_open(child)
        content = process.to_bytes(INT_BYTES, sys.byteorder)
        rights = [(native.SOL_SOCKET, native.SCM_RIGHTS, content)]  # type: ignore[attr-defined]
    except OSError:
        process = -1  # it has ended already, or there is no room for one more file
    asked.sendmsg([b"0"], rights)
    if process >= 0:
        posix.close(process)


def bear(folder: str, files: "list[int]") -> "NoReturn":
    """In a new process: begin as one that was started alone."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for place, file in enumerate(files):
            posix.dup2(file, place)
        program.main(folder)
    finally:
        kind, error, trace = sys.exc_info()
        if kind is not None and error is not None:
            sys.excepthook(kind, error, trace)
        posix._exit(1)
