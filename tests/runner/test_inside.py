"""What a command sees inside a boundary, by really looking.

What Landlock cannot keep out is named here: a list of processes, sockets that have a path, and the
modes and times of files (docs/sandbox.md).
"""

import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from select import select
from tempfile import TemporaryDirectory

import pytest

from koboshi.boundary.port_guard import PortGuard
from koboshi.domain.sandbox import Boundary, Sandbox
from koboshi.ports.runners import EndedBy
from koboshi.runner.landlock import (
    ABI_OF_PORTS,
    ABI_OF_SCOPES,
    KEYRING_CALLS,
    no_sockets,
    version,
)
from tests.harness.insiders import living_of
from tests.harness.polling import until
from tests.runner.scene import Scene


@pytest.fixture
def neighbour() -> Iterator["subprocess.Popen[bytes]"]:
    """A process of our own user outside, with a secret in its environment."""
    with subprocess.Popen(["sleep", "1000"], env={"KEY": "a-secret-key"}) as process:
        yield process
        process.kill()


def python(code: str) -> str:
    return shlex.join([sys.executable, "-I", "-S", "-c", code])


async def test_the_home_of_the_gateway_cannot_be_read_or_changed(scene: Scene) -> None:
    """Issue 15, V5: by no name that leads to it."""
    token = scene.home / "web-token"
    ways = [
        f"cat {token}",
        f"rev {scene.home}/web-tok*",
        f"ln -s {scene.home} link; cat link/web-token",
        f"cat ../{scene.home.name}/web-token",
        f"cat /proc/self/cwd/../{scene.home.name}/web-token",
        f"echo no > {token}",
        f"rm -f {token}; mv {scene.home} gone",
        f"ls -A {scene.home} | grep token",
    ]

    _, output = await scene.run("; ".join(f"{{ {way}; }} 2>/dev/null" for way in ways))

    assert "secret" not in output
    assert "terces" not in output
    assert "token" not in output
    assert token.read_text() == "a secret of the gateway"


async def test_processes_outside_keep_their_environment_and_hear_no_signal(
    scene: Scene, neighbour: "subprocess.Popen[bytes]"
) -> None:
    """Issue 15, V5: `ps eww -e` shows no key, and no signal reaches the gateway."""
    pid = neighbour.pid
    code, output = await scene.run(
        f"cat /proc/*/environ; cat /proc/{pid}/environ; ps eww -e; kill -9 {pid}"
    )

    assert "a-secret-key" not in output
    if scene.enclosure.boundary is Boundary.BUBBLEWRAP or version() >= ABI_OF_SCOPES:
        assert code != 0
        assert neighbour.poll() is None


async def test_a_session_has_its_own_tmp_and_all_share_the_home(scene: Scene) -> None:
    first = await scene.run('echo mine > "$TMPDIR/file"; echo kept > ~/file')
    again = await scene.run('cat "$TMPDIR/file" ~/file')
    other = await scene.run(
        f'cat ~/file; cat "$TMPDIR/file" {scene.home}/inside/tmp/s1/file', session="s2"
    )

    assert first == (0, "")
    assert again == (0, "mine\nkept\n")
    assert other[1].startswith("kept\n")
    assert "mine" not in other[1]


async def test_the_system_is_there_and_cannot_be_changed(scene: Scene) -> None:
    code, output = await scene.run(
        "getent passwd root && sed --version >/dev/null && test -r /etc/resolv.conf && "
        "! touch /usr/koboshi /etc/passwd 2>/dev/null && ls ~ && echo > /dev/null && echo fine"
    )

    assert (code, output.splitlines()[-1]) == (0, "fine")
    assert not Path("/usr/koboshi").exists()


async def test_named_exceptions_are_seen_and_others_are_not(scene: Scene, tmp_path: Path) -> None:
    for name in ("books", "notes", "letters"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(f"words of {name}\n")
    scene.allow(
        readable=(*scene.enclosure.exceptions.readable, str(tmp_path / "books")),
        writable=(str(tmp_path / "notes"),),
    )

    _, output = await scene.run(
        f"cd {tmp_path}; cat books/file notes/file letters/file; echo more >> notes/file; "
        "echo more >> books/file; echo more >> letters/file"
    )

    assert "words of books\nwords of notes\n" in output
    assert "letters\n" not in output.replace("letters/file", "")
    assert (tmp_path / "notes" / "file").read_text() == "words of notes\nmore\n"
    assert (tmp_path / "books" / "file").read_text() == "words of books\n"
    assert (tmp_path / "letters" / "file").read_text() == "words of letters\n"


@pytest.mark.parametrize("scene", [Boundary.BUBBLEWRAP], indirect=True)
async def test_a_socket_is_reached_only_if_it_is_named(scene: Scene) -> None:
    """The bus of the user, the socket of docker. Landlock before version 9 does not cover them."""
    # The names of sockets are short.
    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        path = Path(folder) / "docker.sock"
        listener.bind(str(path))
        listener.listen()
        connect = python(f"import socket; socket.socket(1).connect({str(path)!r})")
        unnamed, _ = await scene.run(connect)
        scene.allow(sockets=(str(path),))
        named, said = await scene.run(connect)

    assert unnamed != 0
    assert (named, said) == (0, "")


async def test_the_folders_of_services_and_people_cannot_be_listed(scene: Scene) -> None:
    """The bus of the user and the socket of docker are in /run; the gateway's are in its home."""
    code, output = await scene.run("ls -A /run /run/user /var /var/lib /srv /mnt 2>/dev/null")

    assert (code, output) == (2, "")


WAYS_OUT = """
import ctypes, os, socket, sys
port, path, name, letters = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
def tcp(): socket.socket().connect(("127.0.0.1", port))
def tcp6(): socket.socket(socket.AF_INET6).connect(("::1", port))
def udp(): socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", letters))
def named(): socket.socket(socket.AF_UNIX).connect(path)
def abstract(): socket.socket(socket.AF_UNIX).connect("\\0" + name)
def ring():
    if ctypes.CDLL(None).syscall(425, 1, ctypes.create_string_buffer(120)) < 0: raise OSError("no")
for way in (tcp, tcp6, udp, named, abstract, ring):
    try:
        way()
    except OSError:
        continue
    print(way.__name__)
pair = socket.socketpair()
pair[0].send(b"x")
print("through")
"""


@pytest.mark.parametrize("sandbox", [Sandbox.WORKSPACE, Sandbox.LOCKED])
async def test_locked_has_no_network(scene: Scene, sandbox: Sandbox) -> None:
    """By no kind of socket. Under Landlock a filter of system calls sees to it."""
    scene.enclosure = replace(scene.enclosure, sandbox=sandbox)
    with TemporaryDirectory() as folder, ExitStack() as stack:
        path, name = f"{folder}/one", f"koboshi-test-{os.getpid()}"
        tcp, letters, named, abstract = (
            stack.enter_context(socket.socket(family, kind))
            for family, kind in (
                (socket.AF_INET, socket.SOCK_STREAM),
                (socket.AF_INET, socket.SOCK_DGRAM),
                (socket.AF_UNIX, socket.SOCK_STREAM),
                (socket.AF_UNIX, socket.SOCK_STREAM),
            )
        )
        tcp.bind(("127.0.0.1", 0))
        letters.bind(("127.0.0.1", 0))
        letters.setblocking(False)
        named.bind(path)
        abstract.bind(f"\0{name}")
        for each in (tcp, named, abstract):
            each.listen()
        ports = tcp.getsockname()[1], letters.getsockname()[1]
        words = shlex.join([WAYS_OUT, str(ports[0]), path, name, str(ports[1])])
        code, said = await scene.run(f"python3 -I -c {words}")
        has_letter = bool(select([letters], [], [], 0)[0])

    ways = said.split()
    assert (code, ways[-1]) == (0, "through"), said
    assert has_letter is (sandbox is Sandbox.WORKSPACE)
    if version() >= ABI_OF_SCOPES:
        # The desktop's: who talks to it types what it likes, outside.
        assert "abstract" not in ways
    if sandbox is Sandbox.WORKSPACE:
        assert "tcp" in ways
    elif scene.enclosure.boundary is Boundary.LANDLOCK:
        assert ways == ["through"]
    else:
        # A network namespace has a loopback of its own, and a ring alone leads nowhere.
        assert set(ways) <= {"udp", "ring", "through"}


def test_the_network_cannot_be_taken_away_on_a_machine_that_is_not_known() -> None:
    with pytest.raises(OSError, match="on riscv64"):
        no_sockets("riscv64")


OTHER_STREAMS = """
import ctypes, socket, sys
for family, protocol in ((2, 262), (10, 262), (2, 256), (43, 0), (43, 1)):
    try:
        one = socket.socket(family, socket.SOCK_STREAM, protocol)
        one.bind(("127.0.0.1" if family != 10 else "::1", int(sys.argv[1])))
    except OSError:
        continue
    print("taken by", family, protocol)
if ctypes.CDLL(None).syscall(425, 1, ctypes.create_string_buffer(120)) >= 0: print("a ring")
socket.socketpair()
print("a pair")
"""


async def test_our_own_port_can_be_neither_taken_nor_reached(scene: Scene) -> None:
    """Issue 15: a program that takes the port of a gateway during its restart would be handed what
    proves who people are."""
    if version() < ABI_OF_PORTS:
        pytest.skip("the kernel has no rules for ports")
    with socket.socket() as ours, socket.socket() as other:
        for each in (ours, other):
            each.bind(("127.0.0.1", 0))
            each.listen()
        mine, free = ours.getsockname()[1], other.getsockname()[1]
        scene.yard.runners.guard = PortGuard(frozenset({mine}))
        reached, _ = await scene.run(f"exec 3<>/dev/tcp/127.0.0.1/{mine}")
        other_reached, said = await scene.run(f"exec 3<>/dev/tcp/127.0.0.1/{free}")
    bind = "import socket, sys; socket.socket().bind(('127.0.0.1', int(sys.argv[1])))"
    taken, _ = await scene.run(f"{python(bind)} {mine}")
    other_taken, _ = await scene.run(f"{python(bind)} {free}")
    # Other ways to be a server of TCP, which Landlock's rules for ports do not know.
    ways = f"{python(OTHER_STREAMS)} {mine}"
    _, others = await scene.run(ways)

    assert (reached, taken) == (1, 1)
    assert (other_reached, said, other_taken) == (0, "", 0)
    assert others == "a pair\n"


async def test_nothing_of_a_command_is_left_when_it_has_ended(scene: Scene) -> None:
    """A child in a session of its own, without a parent and an environment, is ended as well."""
    code, output = await scene.run("(setsid env -i sleep 1000 &); sleep 1000 & echo up; exit 4")

    assert (code, output) == (4, "up\n")
    folder = scene.yard.folder / "1"
    await until(lambda: not living_of(folder), "nothing of it lives")


@pytest.mark.parametrize("scene", [Boundary.BUBBLEWRAP], indirect=True)
async def test_a_sandbox_that_does_not_start_has_run_nothing(scene: Scene) -> None:
    """It is an error of the start, and never a run outside."""
    view = scene.enclosure.view_of("s1")
    started = scene.enclosure.start(view, "/not/there", {"PATH": "/bin"})
    scene.yard.confine = lambda _: started.confinement

    seen, _ = await scene.yard.run("echo ran > ran")

    assert seen.ending is not None
    assert (seen.ending.by, seen.ending.exit_code) == (EndedBy.START, None)
    assert seen.ending.error.startswith("its sandbox did not start: bwrap: Can't chdir")
    assert not (scene.yard.workdir / "ran").exists()


@pytest.mark.parametrize("scene", [Boundary.BUBBLEWRAP], indirect=True)
async def test_a_sandbox_that_was_stopped_before_it_stood_says_so(scene: Scene) -> None:
    """As a service manager does, which tells every process to stop. Red before: its sandbox did not
    start, for no reason."""
    view = scene.enclosure.view_of("s1")
    started = scene.enclosure.start(view, str(scene.yard.workdir), {"PATH": "/bin"})
    assert started.confinement is not None
    slow = ("/bin/sh", "-c", "echo slow; exec sleep 1000")
    scene.yard.confine = lambda _: replace(started.confinement, launcher=slow)
    process_id = await scene.yard.start("echo ran > ran")
    await scene.yard.until_said(process_id, b"slow")

    runner = scene.yard.runner_pid(process_id)
    os.kill(runner, signal.SIGSTOP)
    for pid in scene.yard.tree(process_id):
        os.kill(pid, signal.SIGTERM)
    os.kill(runner, signal.SIGTERM)
    os.kill(runner, signal.SIGCONT)
    seen = await scene.yard.until_free(process_id)

    assert seen.ending is not None
    assert (seen.ending.by, seen.ending.exit_code) == (EndedBy.START, None)
    assert seen.ending.error == "it was told to stop before its sandbox stood"
    assert not (scene.yard.workdir / "ran").exists()


async def test_the_environment_is_in_no_argument(scene: Scene) -> None:
    """Arguments can be read by every user of the machine."""
    view = scene.enclosure.view_of("s1")
    workdir = str(scene.yard.workdir)
    started = scene.enclosure.start(view, workdir, {"PATH": "/bin", "KEY": "a-secret-key"})
    scene.yard.confine = lambda _: started.confinement
    process_id = await scene.yard.start("echo $KEY; sleep 1000", environment=started.environment)
    await scene.yard.until_said(process_id, b"a-secret-key")

    pids = living_of(scene.yard.folder / str(process_id))

    assert pids
    assert not [pid for pid in pids if b"a-secret" in Path(f"/proc/{pid}/cmdline").read_bytes()]


async def test_a_command_is_handed_no_open_file_but_its_own(scene: Scene) -> None:
    """One of ours would lead out: to a folder, the lock, the pipe of another command."""
    code, output = await scene.run("ls /proc/$$/fd; true")

    assert code == 0
    # Bash holds its own terminal or script at 255.
    assert set(output.split()) <= {"0", "1", "2", "255"}


async def test_nothing_can_be_made_in_the_folders_around_what_is_shown(scene: Scene) -> None:
    code, _ = await scene.run("mkdir /new || touch /etc/new || echo x > /etc/hosts")

    assert code != 0


async def test_commands_find_the_programs_of_the_system(scene: Scene) -> None:
    """Wherever the gateway's own interpreter lies, and whatever its search path is."""
    code, output = await scene.run("command -v ls && echo $PATH", PATH="/nowhere/bin:/elsewhere")

    assert code == 0
    assert "/usr/bin" in output.splitlines()[-1].split(":")
    assert "/nowhere/bin" not in output


async def test_nothing_of_the_view_can_be_mounted_anew(scene: Scene, tmp_path: Path) -> None:
    """Not by root either, which bubblewrap leaves its special rights unless they are taken."""
    (books := tmp_path / "books").mkdir()
    (books / "file").write_text("read only\n")
    secret = scene.yard.workdir / "token"
    secret.write_text("a-secret-key")
    is_covering = scene.enclosure.boundary is Boundary.BUBBLEWRAP
    scene.enclosure = replace(
        scene.enclosure, hidden=(*scene.enclosure.hidden, *([str(secret)] if is_covering else ()))
    )
    scene.allow(readable=(*scene.enclosure.exceptions.readable, str(books)))

    _, output = await scene.run(
        f"mount -o remount,bind,rw {books}; echo more >> {books}/file; "
        f"umount {secret}; {'cat token;' * is_covering} grep -h ^Cap /proc/self/status"
    )

    assert (books / "file").read_text() == "read only\n"
    assert "a-secret-key" not in output
    rights = dict(line.split(":\t") for line in output.splitlines() if line.startswith("Cap"))
    assert {rights["CapEff"], rights["CapPrm"]} == {"0" * 16}


async def test_the_kernel_cannot_be_set_up_anew(scene: Scene) -> None:
    """It starts what `core_pattern` names as root, outside. Root may write there without any
    special right. What is written is what stands there."""
    write = "said=$(cat /proc/sys/kernel/core_pattern); echo $said > /proc/sys/kernel/core_pattern"
    code, output = await scene.run(f"ls /proc/sys/kernel >&2; {{ {write}; }} && echo written")

    assert code != 0
    assert "core_pattern" in output
    assert "written" not in output


async def test_keys_that_the_kernel_holds_for_the_gateways_user_are_out_of_reach(
    scene: Scene,
) -> None:
    """Tickets of Kerberos, for one: a program inherits the keyring of its session."""
    if os.uname().machine not in KEYRING_CALLS:
        pytest.skip("the calls of this machine are not known")
    (first, last), _ = KEYRING_CALLS[os.uname().machine]
    call = (
        "ctypes.set_errno(0), libc.syscall(number, b'user', b'x', None, 0, -3), ctypes.get_errno()"
    )
    code = f"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print(*[({call})[1:] for number in range({first}, {last + 1})])
"""
    _, output = await scene.run(f"python3 -I -c {shlex.quote(code)}")

    assert output == "(-1, 1) (-1, 1) (-1, 1)\n"
