"""What a command gets, and how its end is told."""

import errno
import os
import signal
import sys
from pathlib import Path

import pytest
from anyio import move_on_after

from koboshi.ports.runners import EndedBy, Life
from tests.harness.polling import until
from tests.runner.insides import everywhere
from tests.runner.yard import Yard


@everywhere
async def test_output_and_exit_code_are_kept(yard: Yard) -> None:
    seen, output = await yard.run("echo out; echo err >&2; exit 3")

    assert seen.life is Life.ENDED
    assert seen.ending is not None
    assert (seen.ending.by, seen.ending.exit_code, seen.ending.signal) == (EndedBy.ITSELF, 3, None)
    assert seen.ending.error == ""
    assert output == b"out\nerr\n"


@everywhere
async def test_death_by_a_signal_is_not_an_exit_code(yard: Yard) -> None:
    """S171: what an OOM killer does is told apart from what the command did."""
    seen, _ = await yard.run("kill -KILL $$")

    assert seen.ending is not None
    assert (seen.ending.by, seen.ending.exit_code) == (EndedBy.ITSELF, None)
    assert seen.ending.signal == signal.SIGKILL


@everywhere
async def test_start_returns_the_birth_of_the_runner(yard: Yard) -> None:
    process_id = yard.next_id()

    birth = await yard.runners.start(process_id, yard.spec("true"))

    assert birth is not None
    assert birth.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert birth.pid != os.getpid()
    assert birth.start_ticks > 0
    assert (await yard.until_free(process_id)).birth == birth


@everywhere
async def test_a_command_that_ends_at_once_is_never_anything_false(yard: Yard) -> None:
    for _ in range(20):
        process_id = yard.next_id()
        birth = await yard.runners.start(process_id, yard.spec("exit 7"))

        seen = yard.runners.look(process_id)

        assert seen.birth == birth
        assert seen.life in {Life.ALIVE, Life.ENDED}
        seen = await yard.runners.wait(process_id)
        assert seen.ending is not None
        assert seen.ending.exit_code == 7


async def test_the_command_gets_exactly_its_environment_and_the_marker(yard: Yard) -> None:
    _, output = await yard.run("exec env -0", environment={"A": "1\n2", "ü": "=x="})

    given = dict(line.split(b"=", 1) for line in output.split(b"\0") if line)
    marker = given.pop(b"KOBOSHI_PROCESS")
    assert len(marker) == 32
    for of_the_shell in (b"PWD", b"SHLVL", b"_", b"OLDPWD"):
        given.pop(of_the_shell, None)
    assert given == {b"PATH": os.environb[b"PATH"], b"A": b"1\n2", "ü".encode(): b"=x="}


@everywhere
async def test_the_command_inherits_no_file_and_no_ignored_signal(yard: Yard) -> None:
    _, output = await yard.run(
        "grep SigIgn /proc/self/status; ls /proc/self/fd; readlink /proc/self/fd/0"
    )

    ignored, *files, source = output.decode().split("\n")[:-1]
    of_the_c_library = 1 << 31 | 1 << 32
    assert int(ignored.split()[1], 16) & ~of_the_c_library == 0
    assert files == ["0", "1", "2", "3"], "the fourth is of ls itself"
    assert source == "/dev/null"


async def test_runner_and_command_have_a_session_and_groups_of_their_own(yard: Yard) -> None:
    process_id = await yard.start("ps -o pgid=,sid= -p $$; read -r _", takes_input=True)
    group, session = (await yard.until_said(process_id, b"\n")).split()
    runner = yard.runner_pid(process_id)

    assert int(session) == runner
    assert int(group) != runner
    assert os.getsid(runner) == runner != os.getsid(0)


@everywhere
async def test_a_workdir_that_is_not_there_is_a_failed_start(yard: Yard) -> None:
    """S110: the error is told, and no process is left behind."""
    seen, output = await yard.run("touch ran", workdir='/no/such/ü "folder"\n')

    assert seen.ending is not None
    assert seen.ending.by is EndedBy.START
    assert (seen.ending.exit_code, seen.ending.signal) == (None, None)
    # A sandbox enters the folder by itself: it may have another name outside.
    in_sandbox = "its sandbox did not start: bwrap: Can't chdir to "
    said = seen.ending.error.removeprefix(in_sandbox).removeprefix("cannot enter ")
    assert said == '/no/such/ü "folder"\n: No such file or directory'
    assert output in (b"", f"bwrap: Can't chdir to {said}\n".encode())
    assert not (yard.workdir / "ran").exists()


async def test_a_command_too_long_for_the_system_is_a_failed_start(yard: Yard) -> None:
    seen, _ = await yard.run("#" * 3_000_000)

    assert seen.ending is not None
    assert seen.ending.by is EndedBy.START
    assert seen.ending.error.endswith("Argument list too long")


@everywhere
async def test_a_missing_command_is_the_shells_own_answer(yard: Yard) -> None:
    seen, output = await yard.run("no-such-command-anywhere")

    assert seen.ending is not None
    assert (seen.ending.by, seen.ending.exit_code) == (EndedBy.ITSELF, 127)
    assert b"no-such-command-anywhere" in output


@everywhere
@pytest.mark.parametrize(
    "text",
    [
        "'", '"', "\\", "$HOME `id` $(id)", "a\nb\r\nc", "-e", "--", "\x01\x1b[31m", "日本語 🙂",
        "%s=\\0", "\udce9 is latin-1", "}{\":,",
    ],
)  # fmt: skip
async def test_hostile_strings_arrive_unchanged(yard: Yard, text: str) -> None:
    workdir = yard.workdir / f"in {text}".replace("/", "_")
    workdir.mkdir()
    raw = text.encode("utf-8", "surrogateescape")

    seen, output = await yard.run(
        "printf '%s|' \"$TEXT\"; pwd", workdir=str(workdir), environment={"TEXT": text}
    )
    commented, _ = await yard.run(f": <<'THE END'\n{text}\nTHE END\nexit 5")

    assert seen.ending is not None
    assert seen.ending.exit_code == 0
    assert output == raw + b"|" + os.fsencode(workdir) + b"\n"
    assert commented.ending is not None
    assert commented.ending.exit_code == 5


@everywhere
async def test_a_command_that_looks_like_an_option_is_a_command(yard: Yard) -> None:
    seen, output = await yard.run("-x")

    assert seen.ending is not None
    assert seen.ending.exit_code == 127
    assert b"-x" in output


@pytest.mark.parametrize(
    "command,environment,timeout_seconds",
    [
        ("true\0false", {}, 1.0),
        ("true", {"A": "\0"}, 1.0),
        ("true", {"A=B": "C"}, 1.0),
        ("true", {"": "C"}, 1.0),
        ("true \ud800", {}, 1.0),
        ("true", {}, float("nan")),
    ],
)
async def test_what_no_system_could_start_is_refused_and_never_begins(
    yard: Yard, command: str, environment: dict[str, str], timeout_seconds: float
) -> None:
    process_id = yard.next_id()
    spec = yard.spec(command, environment=environment, timeout_seconds=timeout_seconds)

    with pytest.raises(OSError, match=r"no command can|no character|not a number") as refused:
        await yard.runners.start(process_id, spec)

    assert refused.value.errno in {errno.EINVAL, errno.EILSEQ}
    assert yard.runners.look(process_id).life is Life.UNBORN


@pytest.mark.parametrize(
    "name", ["with space", "ünï-日本", "-dash", "new\nline", "'\"$(id)", "x" * 200]
)
async def test_the_home_may_have_any_name(tmp_path: Path, name: str) -> None:
    yard = Yard(tmp_path / name / "processes", workdir=tmp_path)
    (tmp_path / name).mkdir()

    seen, output = await yard.run("echo here; exit 4")

    assert seen.ending is not None
    assert seen.ending.exit_code == 4
    assert output == b"here\n"


async def test_files_are_private_business(yard: Yard) -> None:
    process_id = await yard.start("echo secret", takes_input=True)
    await yard.until_free(process_id)

    folder = yard.files(process_id).folder
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o077 for path in folder.iterdir()} == {0}


async def test_a_runner_that_cannot_be_started_is_an_error_and_never_begins(yard: Yard) -> None:
    yard.runners.python = "/no/such/python"
    process_id = yard.next_id()

    with pytest.raises(FileNotFoundError):
        await yard.runners.start(process_id, yard.spec("true"))

    assert yard.runners.look(process_id).life is Life.UNBORN


async def test_a_runner_that_dies_before_its_birth_is_an_error_and_never_begins(yard: Yard) -> None:
    yard.runners.python = "/bin/false"
    process_id = yard.next_id()

    with pytest.raises(ChildProcessError, match="was not born"):
        await yard.runners.start(process_id, yard.spec("true"))

    assert yard.runners.look(process_id).life is Life.UNBORN


async def test_the_same_id_never_begins_twice(yard: Yard) -> None:
    process_id = await yard.start("echo once >> ran")
    await yard.until_free(process_id)

    with pytest.raises(FileExistsError):
        await yard.runners.start(process_id, yard.spec("echo twice >> ran"))

    assert (yard.workdir / "ran").read_text() == "once\n"


@everywhere
async def test_dead_runners_do_not_pile_up_as_zombies(yard: Yard) -> None:
    """Also where no one looks at them."""
    ids = [await yard.start("read -r _", takes_input=True) for _ in range(5)]
    # Each runner is buried by its keeper, and the keepers by what forked them.
    runners = [yard.keeper_pid(each) for each in ids]
    for each in ids:
        assert await yard.runners.write(each, b"\n")

    await until(lambda: [state(pid) for pid in runners] == [""] * 5, "they are gone")


@everywhere
async def test_no_open_file_is_left_behind(yard: Yard) -> None:
    await use_everything(yard)
    before = len(os.listdir("/proc/self/fd"))

    for _ in range(5):
        await use_everything(yard)

    # What a test before this one has left may be closed meanwhile.
    assert len(os.listdir("/proc/self/fd")) <= before


async def use_everything(yard: Yard) -> None:
    process_id = await yard.start("read -r _; sleep 1000", takes_input=True)
    await yard.runners.wait(process_id, 0.01)
    await yard.runners.write(process_id, b"\n")
    await yard.runners.end(process_id, grace_s=5)
    yard.output(process_id)
    yard.runners.remove(process_id)
    yard.runners.python = "/no/such/python"
    with pytest.raises(OSError, match="No such file"):
        await yard.start("true")
    yard.runners.python = sys.executable


@everywhere
@pytest.mark.parametrize("after_s", [0, 0.001, 0.003, 0.01])
async def test_a_start_that_was_cancelled_leaves_the_truth(yard: Yard, after_s: float) -> None:
    """A turn is stopped while its command is being born: that runs, or never will."""
    process_id = yard.next_id()
    with move_on_after(after_s):
        await yard.runners.start(process_id, yard.spec("echo ran >> ran; exit 3"))

    seen = await yard.until_free(process_id)

    ran = (yard.workdir / "ran").exists()
    assert seen.life is (Life.ENDED if ran else Life.UNBORN)
    assert yard.runners.look(process_id) == seen


def state(pid: int) -> str:
    """The state of a process as the system writes it; empty if there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""
