"""No secret of the gateway is shown by the gateway, whatever the request."""

from pathlib import Path

import pytest

from tests.cli.process import gateway, koboshi
from tests.harness.rows import read_rows


@pytest.mark.parametrize("how", ["run", "in background"])
def test_the_token_that_was_made_for_the_web_is_not_shown_by_a_command(
    tmp_path: Path, how: str
) -> None:
    """S120: at its first start, when the token has just been made: neither to the model, nor to
    people, nor on the console. On the host: inside the boundary the file is not there."""
    home = tmp_path / "home"
    on_host = {"KOBOSHI__TOOLS__SANDBOX": "host", "KOBOSHI__TOOLS__TERMINAL__APPROVAL": "never"}
    with gateway(home, **on_host) as one:
        token = (home / "web-token").read_text().strip()
        one.wait_state(one.say("a", f"{how} echo it is; cat {home / 'web-token'}"), "done")
        one.wait_state(one.say("a", "echo after"), "done")
        listed = koboshi("processes", "log", "p1", home=home)
        one.stop()

    rows = read_rows(home)
    shown = [step["body"] for step in rows.steps] + [row["text"] for row in rows.outbox]
    assert "it is\n***" in listed.out
    assert not any(token in words for words in (*shown, listed.out))
