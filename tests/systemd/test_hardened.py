"""A sandboxed command under the very settings of the shipped unit.

The unit is ours, word for word; a drop-in only puts another program in the place of the gateway.
The kernel lets a sandbox mount its `/proc` only where no part of the `/proc` that it sees is
covered. systemd 252 leaves the old tree hidden beneath that of the service, and the old `/proc`
counts. Later ones remove the old tree. `whole_proc_only_in_the_service` covers a part of the
machine's own `/proc`, so that only what the service itself sees can count, as with those.
"""

import shlex
import shutil
from collections.abc import Iterator

import pytest

from tests.systemd.conftest import Install
from tests.systemd.machine import UNIT, Machine, installed_for_user, only_by_itself

pytestmark = [
    pytest.mark.systemd,
    pytest.mark.timeout(120),
    pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
]

VIEW = (
    "--die-with-parent --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib"
    " --symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp"
)
SEES = (
    "test ! -e /etc/shadow && test ! -e /var/lib && touch /tmp/one"
    " && test $(ls /proc | grep -c '^[0-9]') -lt 9"
)
SANDBOXES = {
    "workspace": f"bwrap --unshare-all --share-net {VIEW} -- sh -c {shlex.quote(SEES)}",
    "locked": f"bwrap --unshare-all {VIEW} -- sh -c {shlex.quote(SEES)}",
}
INSTEAD = """\
ExecStart=
ExecStart=/bin/sh {folder}/script
Type=oneshot
Restart=no
RestartForceExitStatus=
"""
LANDLOCK = """\
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
PR_SET_NO_NEW_PRIVS, CREATE_RULESET, RESTRICT_SELF, READ_FILE = 38, 444, 446, 4
handled = ctypes.c_uint64(READ_FILE)
ruleset = libc.syscall(CREATE_RULESET, ctypes.byref(handled), ctypes.c_size_t(8), 0)
assert ruleset >= 0, ctypes.get_errno()
assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
assert libc.syscall(RESTRICT_SELF, ruleset, 0) == 0, ctypes.get_errno()
try:
    open("/etc/passwd")
except PermissionError:
    print("closed")
"""


@pytest.fixture
def whole_proc_only_in_the_service(machine: Machine) -> Iterator[None]:
    assert machine.run("mount", "--bind", "/proc/sys", "/proc/sys").code == 0
    yield
    assert machine.run("umount", "/proc/sys").code == 0


def ran_as_the_service(machine: Machine, install: Install, script: str, besides: str = "") -> str:
    """Run a shell script in the place of the gateway; "" if it went well, else what it said."""
    folder = machine.shared_folder()
    machine.inside(folder / "script").write_text(script)
    install(f"{INSTEAD.format(folder=folder)}StandardError=file:{folder}/said\n{besides}")
    done = machine.systemctl("start", UNIT)
    said = machine.inside(folder / "said")
    return "" if done.code == 0 else (said.read_text() if said.exists() else "") + done.err


@pytest.mark.usefixtures("whole_proc_only_in_the_service")
@pytest.mark.parametrize("kind", SANDBOXES)
def test_a_sandboxed_command_runs_under_the_settings_of_the_unit(
    machine: Machine, install: Install, kind: str
) -> None:
    """Issue 15, item 7: hardening must not take the boundary away."""
    assert ran_as_the_service(machine, install, SANDBOXES[kind]) == ""


@only_by_itself
@pytest.mark.usefixtures("whole_proc_only_in_the_service")
@pytest.mark.parametrize(
    "setting",
    [
        "ProcSubset=pid",
        "ProtectHostname=yes",
        "ProtectKernelLogs=yes",
        "ProtectKernelTunables=yes",
        "RestrictNamespaces=yes",
        "SystemCallFilter=~@privileged",
        "SystemCallFilter=~@mount",
    ],
)
def test_what_the_unit_leaves_out_would_end_the_sandbox(
    machine: Machine, install: Install, setting: str
) -> None:
    """The reasons that the docs give are facts, and the test above can fail."""
    assert "bwrap: " in ran_as_the_service(machine, install, SANDBOXES["workspace"], setting + "\n")


def test_landlock_holds_under_the_settings_of_the_unit(machine: Machine, install: Install) -> None:
    python = shlex.join(["python3", "-c", LANDLOCK])
    if machine.run_as_user("sh", "-c", python).out.strip() != "closed":
        pytest.skip("the kernel has no Landlock")

    assert ran_as_the_service(machine, install, f'test "$({python})" = closed') == ""


def test_the_unit_keeps_out_what_its_settings_say(machine: Machine, install: Install) -> None:
    tried = {
        "processes of others": "test -e /proc/1",
        "disks": "ls /dev | grep -E '^(vd|sd|nvme|loop|kmsg|mem|kvm)'",
        "the system": "touch /usr/one /etc/one",
        "the clock": "date --set='2001-01-01'",
        "debugging": "strace -f true",
    }
    script = "".join(
        f"if ({command}); then echo {what} >&2; exit 1; fi\n" for what, command in tried.items()
    )

    assert ran_as_the_service(machine, install, script) == ""


@only_by_itself
def test_a_sandboxed_command_runs_under_a_users_unit(machine: Machine) -> None:
    """It has no mount of its own, so the machine's `/proc` is the one that counts."""
    folder = machine.shared_folder()
    script = (
        f"{SANDBOXES['workspace']} && {SANDBOXES['locked']} && strace true && touch {folder}/ran"
    )
    machine.inside(folder / "script").write_text(script)

    one = installed_for_user(machine, INSTEAD.format(folder=folder))
    try:
        assert machine.inside(folder / "ran").exists()
        assert one.shown("NoNewPrivileges") == "yes"
        assert "reboot" in one.shown("SystemCallFilter")
    finally:
        one.bury()
