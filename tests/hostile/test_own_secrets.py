"""Issue 15, V5: the gateway's environment, home and secret files are closed to the agent."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.process import KOBOSHI, Gateway, children, gateway, koboshi, until

KEY = "KOBOSHI_TEST_KEY"
SECRET = "s3cret-value-of-the-web"
WITHOUT_RIGHTS = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
"""Root without the rights that make it more than any other user."""

needs_setpriv = pytest.mark.skipif(
    os.geteuid() == 0 and not shutil.which("setpriv"), reason="as root it needs setpriv"
)


def unprivileged(*command: str) -> tuple[str, ...]:
    return (*WITHOUT_RIGHTS, *command) if os.geteuid() == 0 else command


def environment_shown(pid: int) -> subprocess.CompletedProcess[bytes]:
    """The environment of a process, as another process of the same user is shown it."""
    command = unprivileged("cat", f"/proc/{pid}/environ")
    return subprocess.run(command, capture_output=True, check=False)


def configured(home: Path) -> dict[str, str]:
    """A web channel whose token is in a variable."""
    home.mkdir(mode=0o700, parents=True)
    (home / "koboshi.toml").write_text(f'[channels.web.main]\ntoken_env = "{KEY}"\n')
    return {KEY: SECRET}


@needs_setpriv
def test_the_environment_of_the_gateway_is_closed_to_its_own_user(home: Path) -> None:
    with gateway(home, command=unprivileged(KOBOSHI), **configured(home)) as one:
        shown = environment_shown(one.pid)

        assert shown.returncode != 0
        assert b"Permission denied" in shown.stderr
        assert one.asked(ask="status")["ok"] is True


@needs_setpriv
def test_the_same_holds_for_the_parent_that_starts_it_again(home: Path) -> None:
    command, secrets = unprivileged(KOBOSHI), configured(home)
    with gateway(home, "--supervise", command=command, **secrets) as one:
        (child,) = until(lambda: children(one.pid), "the gateway lives")

        assert environment_shown(one.pid).returncode != 0
        assert environment_shown(child).returncode != 0


def test_even_who_may_look_finds_no_secret_in_it(home: Path) -> None:
    """As root looks, or a system without this protection."""
    with gateway(home, **configured(home)) as one:
        held = Path(f"/proc/{one.pid}/environ").read_bytes() if os.geteuid() == 0 else b""

        assert SECRET.encode() not in held
        assert one.asked(ask="status")["ok"] is True


def test_a_restart_by_itself_still_has_the_secret(home: Path) -> None:
    """Without a parent it becomes a new gateway in the same process, with what it was given."""
    with gateway(home, **configured(home)) as one:
        assert koboshi("restart", home=home, **{KEY: SECRET}).code == 0
        one.wait_serving(times=2)
        assert "Traceback" not in one.err


def read(one: Gateway, path: Path) -> Any:
    call = {"tool": "read_file", "arguments": {"path": str(path)}}
    script = "script: " + json.dumps([{"calls": [call]}, {"text": "through"}])
    message = one.say("terminal", script)
    turn = one.wait_state(message, "done")["turn"]
    told = one.asked(ask="tell", kind="turn", what=f"t{turn['turn_id']}")
    return json.dumps(told)


@pytest.mark.parametrize(
    "sandbox, refusals",
    [
        ("host", ("off limits", "may hold keys")),
        ("workspace", ("is not visible inside the sandbox", "does not exist")),
    ],
)
def test_read_file_opens_no_secret_file(
    tmp_path: Path, sandbox: str, refusals: tuple[str, ...]
) -> None:
    home, token = tmp_path / "home", tmp_path / "token"
    home.mkdir(mode=0o700)
    token.write_text(SECRET)
    token.chmod(0o600)
    netrc = tmp_path / ".netrc"
    netrc.write_text(f"machine a password {SECRET}")
    linked = tmp_path / "innocent"
    linked.symlink_to(token)
    twin = tmp_path / "twin"
    os.link(token, twin)
    config = tmp_path / "elsewhere.toml"
    config.write_text(f'[channels.web.main]\ntoken_file = "{token}"\n# {SECRET}-2\n')
    env = {"KOBOSHI_CONFIG": str(config), "KOBOSHI__TOOLS__SANDBOX": sandbox}
    with gateway(home, KOBOSHI__GATEWAY__WORKDIR=str(tmp_path / "work"), **env) as one:
        (home / "web-token").write_text(SECRET)
        control_key = (home / "control-key").read_text().strip()
        for path in (token, netrc, linked, twin, config, home / "control-key"):
            told = read(one, path)
            assert SECRET not in told, path
            assert control_key not in told, path
            assert any(words in told for words in refusals), (path, told)
