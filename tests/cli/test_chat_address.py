"""Where `koboshi chat` looks for the gateway."""

from pathlib import Path

from koboshi.cli.chat.command import served_url
from tests.cli.process import gateway, koboshi


def test_a_gateway_that_runs_tells_where_it_is(tmp_path: Path) -> None:
    """It took any free port, and the one who talks to it was told nothing of that."""
    home = tmp_path / "home"
    assert served_url(home) is None
    with gateway(home) as one:
        host, port = one.wait_serving()
        assert served_url(home) == f"http://{host}:{port}"

        said = koboshi("chat", "--once", "echo hello there", home=home)

    assert (said.code, said.out.strip()) == (0, "hello there"), said.err
    assert served_url(home) is None
