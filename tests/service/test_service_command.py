"""`koboshi service`: what it writes, what it runs, and what it leaves alone."""

import plistlib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from koboshi.cli.service.files import UnitFileStanding, signed, standing
from koboshi.cli.service.unit_text import Service, launchd_plist, quoted, systemd_unit
from tests.cli.process import KOBOSHI, Ended, ended, environment

TextOf = Callable[[Service], str]

AWKWARD = '/a b%h/$HOME/"x"/back\\slash'


def described(**changes: object) -> Service:
    values: dict[str, object] = {
        "command": ("/opt/koboshi/bin/koboshi",),
        "interpreter": Path("/usr/bin/python3"),
        "home": Path("/var/lib/koboshi/.koboshi"),
        "config_file": None,
        "workdir": Path("/var/lib/koboshi/koboshi"),
        "drain_seconds": 45.0,
        "is_system": True,
        "user": "koboshi",
        "version": 252,
    }
    return Service(**{**values, **changes})  # type: ignore[arg-type]


def lines(unit: str) -> list[str]:
    return [line for line in unit.splitlines() if line and not line.startswith("#")]


@pytest.fixture
def person(tmp_path: Path) -> "Person":
    return Person(tmp_path)


class Person:
    """A person with a home of their own and a systemctl that writes down what it is asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.unit = folder / ".config/systemd/user/koboshi.service"
        self.asked_file = folder / "asked"
        self.tools = folder / "tools"
        self.tools.mkdir()
        for name in ("systemctl", "loginctl"):
            self.let(name, "exit 0")

    def let(self, name: str, program: str) -> None:
        """What a tool does after it was noted down."""
        file = self.tools / name
        file.write_text(f'#!/bin/sh\necho {name} "$@" >> {self.asked_file}\n{program}\n')
        file.chmod(0o755)

    def asked(self) -> list[str]:
        text = self.asked_file.read_text() if self.asked_file.exists() else ""
        return [line for line in text.splitlines() if not line.endswith("--version")]

    def service(self, *arguments: str, **more: str) -> Ended:
        path = more.pop("PATH", f"{self.tools}:/usr/bin:/bin")
        more |= {"HOME": str(self.folder), "XDG_CONFIG_HOME": "", "PATH": path}
        return ended([KOBOSHI, "service", *arguments], environment(None, **more))


# ── the text ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "line",
    [
        "Type=notify",
        "KillMode=process",
        "Delegate=yes",
        "OOMPolicy=continue",
        "Restart=on-failure",
        "RestartPreventExitStatus=78",
        "RestartForceExitStatus=75",
        "TimeoutStopSec=90",
        "WatchdogSec=60",
        "NoNewPrivileges=yes",
    ],
)
@pytest.mark.parametrize("is_system", [True, False])
def test_both_units_say_what_survival_needs(line: str, is_system: bool) -> None:
    assert line in lines(systemd_unit(described(is_system=is_system)))


@pytest.mark.parametrize(
    "word",
    ["PrivateTmp", "DynamicUser", "RestrictNamespaces", "ProcSubset", "MemoryDenyWriteExecute"],
)
def test_no_unit_says_what_breaks_commands(word: str) -> None:
    for is_system in (True, False):
        assert not [
            each for each in lines(systemd_unit(described(is_system=is_system))) if word in each
        ]


def test_a_user_unit_has_nothing_that_only_root_may_ask_for() -> None:
    unit = systemd_unit(described(is_system=False, path="/usr/bin"))

    for word in ("User=", "CapabilityBoundingSet", "Protect", "StateDirectory", "multi-user"):
        assert word not in unit
    assert "WantedBy=default.target" in unit
    assert "Environment=PATH=/usr/bin" in unit


@pytest.mark.parametrize("version, grows", [(0, False), (252, False), (254, True), (257, True)])
def test_the_pause_grows_where_systemd_can_do_it(version: int, grows: bool) -> None:
    assert ("RestartSteps=" in systemd_unit(described(version=version))) is grows


def test_the_limit_follows_the_drain() -> None:
    assert "TimeoutStopSec=646" in systemd_unit(described(drain_seconds=600.5))


@pytest.mark.parametrize(
    "change, is_closed",
    [
        ({}, True),
        ({"workdir": Path("/home") / "alice"}, False),
        ({"home": Path("/root") / ".koboshi"}, False),
        ({"interpreter": Path("/home") / "alice/python3"}, False),
        ({"command": ("/root" + "/venv/bin/koboshi",)}, False),
        ({"config_file": Path("/home") / "alice/koboshi.toml"}, False),
        ({"workdir": Path("/homestead")}, True),
    ],
)
def test_homes_are_closed_unless_something_of_ours_lies_there(
    change: dict[str, object], is_closed: bool
) -> None:
    assert ("ProtectHome=yes" in systemd_unit(described(**change))) is is_closed


def test_a_folder_is_made_by_systemd_only_where_it_is_ours() -> None:
    assert "StateDirectory=koboshi" in systemd_unit(described())
    assert "StateDirectory" not in systemd_unit(described(home=Path("/var/lib/other/home")))


@pytest.mark.parametrize(
    "word, written",
    [
        ("plain", "plain"),
        ("/usr/bin/x", "/usr/bin/x"),
        ("", '""'),
        ("a b", '"a b"'),
        ("100%", "100%%"),
        ("a;b", '"a;b"'),
        ("$HOME", '"$HOME"'),
        ('say "x"', '"say \\"x\\""'),
        ("back\\slash", '"back\\\\slash"'),
        ("it's", '"it\'s"'),
        ("ünï", "ünï"),
    ],
)
def test_words_are_quoted_as_systemd_reads_them(word: str, written: str) -> None:
    assert quoted(word) == written


@pytest.mark.parametrize(
    "path", ["/a\nExecStartPre=/bin/evil", "/a\0b", "/a\x1b", "/a ", "/\udc80"]
)
@pytest.mark.parametrize("text_of", [systemd_unit, launchd_plist])
def test_a_path_that_would_forge_a_line_is_refused(path: str, text_of: TextOf) -> None:
    with pytest.raises(ValueError, match="cannot be written"):
        text_of(described(home=Path(path)))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("is_system", [True, False])
def test_systemd_itself_finds_nothing_wrong(tmp_path: Path, is_system: bool) -> None:
    unit = tmp_path / "koboshi.service"
    home = tmp_path / "a b%h $HOME"
    program = tmp_path / "x y" / "koboshi"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit.write_text(
        systemd_unit(
            described(is_system=is_system, user="root", home=home, command=(str(program),))
        )
    )

    scope = "--system" if is_system else "--user"
    done = subprocess.run(
        ["systemd-analyze", "verify", scope, "--recursive-errors=no", str(unit)],
        capture_output=True,
        text=True,
        check=False,
        env={"XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )

    assert "koboshi.service" not in done.stderr, done.stderr


def test_the_property_list_is_one_and_tells_its_own_limit() -> None:
    read = plistlib.loads(
        signed(launchd_plist(described(home=Path(AWKWARD), path="/usr/bin")), "1").encode()
    )

    assert read["ProgramArguments"][-1] == AWKWARD
    assert read["ExitTimeOut"] == 90
    assert read["EnvironmentVariables"] == {"KOBOSHI_GRACE_SECONDS": "90", "PATH": "/usr/bin"}
    assert read["KeepAlive"] == {"SuccessfulExit": False}
    assert read["UserName"] == "koboshi"


# ── the file ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("text_of", [systemd_unit, launchd_plist])
def test_a_file_of_an_older_koboshi_is_told_from_a_changed_one(
    tmp_path: Path, text_of: TextOf
) -> None:
    file, wanted = tmp_path / "file", signed(text_of(described()), "2.0")
    assert standing(file, wanted) is UnitFileStanding.NOTHING
    file.write_text(wanted)
    assert standing(file, wanted) is UnitFileStanding.SAME
    older = signed(text_of(described(drain_seconds=5)), "1.0")
    file.write_text(older)
    assert standing(file, wanted) is UnitFileStanding.OURS
    file.write_text(older.replace("50", "51"))
    assert standing(file, wanted) is UnitFileStanding.CHANGED
    file.write_text(older + "\n")
    assert standing(file, wanted) is UnitFileStanding.CHANGED
    file.write_text("[Service]\nExecStart=/bin/true\n")
    assert standing(file, wanted) is UnitFileStanding.CHANGED
    file.unlink()
    file.symlink_to("/dev/null-ish")
    assert standing(file, wanted) is UnitFileStanding.CHANGED


def test_install_writes_starts_and_lingers(person: Person) -> None:
    shown = person.service("show", "--user")
    done = person.service("install", "--user")

    assert done.code == 0, done.err
    assert person.unit.read_text() == shown.out
    assert person.asked() == [
        "systemctl --user daemon-reload",
        "systemctl --user enable --now koboshi.service",
        "loginctl enable-linger",
    ]
    assert [each.name for each in person.unit.parent.iterdir()] == ["koboshi.service"]


def test_installing_again_restarts_with_the_new_file(person: Person) -> None:
    person.service("install", "--user", "--no-start")
    assert person.asked() == []

    done = person.service("install", "--user", KOBOSHI__GATEWAY__DRAIN_SECONDS="5")

    assert done.code == 0, done.err
    assert "TimeoutStopSec=50" in person.unit.read_text()
    assert "systemctl --user restart koboshi.service" in person.asked()


def test_a_changed_file_is_left_alone_unless_forced(person: Person) -> None:
    person.service("install", "--user", "--no-start")
    mine = person.unit.read_text() + "# mine\n"
    person.unit.write_text(mine)

    for command in ("install", "uninstall"):
        refused = person.service(command, "--user")
        assert refused.code == 1
        assert "was changed by hand; --force" in refused.err
        assert person.unit.read_text() == mine
    assert person.asked() == []

    assert person.service("install", "--user", "--force").code == 0
    assert "# mine" not in person.unit.read_text()


def test_uninstall_stops_it_and_removes_the_file(person: Person) -> None:
    person.service("install", "--user", "--no-start")

    done = person.service("uninstall", "--user")

    assert done.code == 0, done.err
    assert not person.unit.exists()
    assert person.asked() == [
        "systemctl --user disable --now koboshi.service",
        "systemctl --user daemon-reload",
    ]
    again = person.service("uninstall", "--user")
    assert (again.code, "there is no" in again.err) == (1, True)


def test_without_systemctl_it_says_what_to_run(person: Person) -> None:
    done = person.service("install", "--user", PATH=str(person.folder))

    assert done.code == 0, done.err
    assert person.unit.exists()
    assert "now run:\n  systemctl --user daemon-reload\n" in done.out


def test_a_command_that_fails_is_named_with_what_is_left(person: Person) -> None:
    person.let("systemctl", "echo Failed to connect to bus >&2; exit 1")

    done = person.service("install", "--user")

    assert done.code == 1
    assert "`systemctl --user daemon-reload` failed: Failed to connect to bus" in done.err
    assert "enable --now koboshi.service" in done.err
    assert "Traceback" not in done.err


def test_a_folder_that_cannot_be_written_is_named(person: Person) -> None:
    (person.folder / ".config").write_text("a file")

    done = person.service("install", "--user")

    assert done.code == 1
    assert str(person.unit) in done.err
    assert "Traceback" not in done.err
    assert person.asked() == []


def test_a_system_service_needs_its_user(person: Person) -> None:
    done = person.service("install", "--system", "--run-as", "no-such-user-here")

    assert done.code == 1
    assert "there is no user no-such-user-here yet; make one: useradd" in done.err


def test_a_system_service_takes_its_users_home(person: Person) -> None:
    done = person.service("show", "--system", "--run-as", "daemon")

    assert done.code == 0, done.err
    assert "User=daemon" in done.out
    assert str(person.folder / ".koboshi") not in done.out


def test_a_wrong_configuration_does_not_keep_the_unit_from_being_shown(person: Person) -> None:
    done = person.service("show", "--user", KOBOSHI__GATEWAY__BUSY="nonsense")

    assert done.code == 0
    assert "note: the configuration cannot be used" in done.err
    assert "TimeoutStopSec=90" in done.out


def test_the_property_list_goes_where_launchd_looks(person: Person) -> None:
    person.let("launchctl", "exit 0")

    done = person.service("install", "--user", "--kind", "launchd")

    assert done.code == 0, done.err
    file = person.folder / "Library/LaunchAgents/koboshi.gateway.plist"
    assert plistlib.loads(file.read_bytes())["RunAtLoad"] is True
    assert person.asked()[0].startswith("launchctl bootstrap gui/")
