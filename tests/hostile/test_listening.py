"""The gateway listens where no other can come, unless a proxy in front of it is stated."""

import json
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from koboshi.channels.common.listening import CannotListen, ListenAddress, listen
from koboshi.channels.web.entering import LOGIN_PATH
from koboshi.channels.web.names import Names
from koboshi.config import ConfigError, WebConfig, load
from tests.cli.process import gateway, koboshi
from tests.harness.process import GatewayProcess

ELSEWHERE = [
    "0.0.0.0",
    "::",
    "192.0.2.7",
    "10.0.0.1",
    "169.254.1.1",
    "fe80::1%eth0",
    "::ffff:192.0.2.7",
    "0",
    "127.1",
    "localhost.localdomain",
    "example.com",
    "127.0.0.1 ",
    "127.0.0.1\\u0000",
    "",
    "*",
]


@pytest.mark.parametrize("host", ELSEWHERE)
@pytest.mark.parametrize("key", ["channels.web.main.host", "channels.telegram.main.webhook_host"])
def test_no_other_address_can_be_configured(tmp_path: Path, key: str, host: str) -> None:
    section, _, name = key.rpartition(".")
    file = tmp_path / "koboshi.toml"
    file.write_text(f'[{section}]\n{name} = "{host}"\n')

    with pytest.raises(ConfigError) as refused:
        load(tmp_path / "home", file, {})

    assert f"{key} must be a loopback address" in str(refused.value)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "127.0.0.1"])
@pytest.mark.parametrize("url", ["https://koboshi.example.org", "http://localhost:8642"])
def test_with_a_stated_proxy_it_can(tmp_path: Path, host: str, url: str) -> None:
    file = tmp_path / "koboshi.toml"
    file.write_text(f'[channels.web.main]\nhost = "{host}"\npublic_url = "{url}"\n')

    (web,) = load(tmp_path / "home", file, {}).channels

    assert isinstance(web, WebConfig)
    assert (web.host, web.public_url) == (host, url)


HOST, ORIGIN = "koboshi.example.org", "https://koboshi.example.org"


@pytest.mark.parametrize(
    "host, url, asked, origins",
    [
        ("127.0.0.1", "", "localhost:8642", {"http://localhost:8642", "https://localhost:8642"}),
        ("127.0.0.1", "", "LocalHost", {"http://localhost", "https://localhost"}),
        ("127.0.0.1", "", "[::1]:1", {"http://[::1]:1", "https://[::1]:1"}),
        ("127.0.0.2", "", "127.0.0.2:9", {"http://127.0.0.2:9", "https://127.0.0.2:9"}),
        ("127.0.0.1", "", "127.0.0.2:9", set()),
        ("127.0.0.1", "", HOST, set()),
        ("127.0.0.1", "", "localhost:123456", set()),
        ("127.0.0.1", "", "localhost:8642:8642", set()),
        ("127.0.0.1", "", "localhost.evil.example", set()),
        ("127.0.0.1", "", "", set()),
        ("0.0.0.0", ORIGIN, HOST, {ORIGIN}),
        ("0.0.0.0", ORIGIN, f"{HOST.upper()}:443", {ORIGIN}),
        ("0.0.0.0", ORIGIN, f"{HOST}:8642", set()),
        ("0.0.0.0", ORIGIN, f"a.{HOST}", set()),
        ("0.0.0.0", ORIGIN, "0.0.0.0", set()),
        ("192.0.2.7", ORIGIN, "192.0.2.7", set()),
        ("0.0.0.0", f"{ORIGIN}:8443/", f"{HOST}:8443", {f"{ORIGIN}:8443"}),
        ("0.0.0.0", f"{ORIGIN}:8443/", HOST, set()),
        ("::", "https://[2001:db8::1]", "[2001:db8::1]", {"https://[2001:db8::1]"}),
        ("0.0.0.0", ORIGIN, "127.0.0.1:8642", {"http://127.0.0.1:8642", "https://127.0.0.1:8642"}),
    ],
)
def test_what_a_page_of_ours_says_where_it_is_from(
    host: str, url: str, asked: str, origins: set[str]
) -> None:
    names = Names(host=host, public_url=url)

    assert names.origins_of(asked) == origins
    assert names.needs_tls(asked) == (len(origins) == 1)


@pytest.mark.crash
def test_behind_a_stated_proxy_only_its_pages_are_served(home: Path) -> None:
    """The proxy is this test: it passes on the name that it was asked by."""
    told = {
        "KOBOSHI__CHANNELS__WEB__MAIN__HOST": "0.0.0.0",
        "KOBOSHI__CHANNELS__WEB__MAIN__PUBLIC_URL": f"{ORIGIN}/",
    }
    with gateway(home, **told) as one:
        _, port = one.wait_serving()
        link = koboshi("open", "--print", home=home).out.strip()

        def enter(host: str, origin: str) -> tuple[int, str]:
            with closing(HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
                body = json.dumps({"code": link.partition("#")[2]})
                connection.request("POST", LOGIN_PATH, body, {"Host": host, "Origin": origin})
                answer = connection.getresponse()
                return answer.status, answer.headers.get("Set-Cookie", "")

        assert link.startswith(f"{ORIGIN}/login#")
        assert enter("0.0.0.0", ORIGIN)[0] == 421
        assert enter(f"{HOST}:8642", ORIGIN)[0] == 421
        assert enter(HOST, f"http://{HOST}")[0] == 403
        assert enter(HOST, "https://evil.example")[0] == 403
        status, cookie = enter(HOST, ORIGIN)
        assert status == 200
        assert cookie.endswith("; HttpOnly; SameSite=Strict; Secure")


async def test_a_name_of_this_machine_that_leads_elsewhere_is_not_listened_on() -> None:
    """What is configured is a name; what counts is the address that it stands for."""
    with pytest.raises(CannotListen, match="which others can reach"):
        await listen(ListenAddress(host="0.0.0.0", port=0))


@pytest.mark.crash
async def test_a_gateway_does_not_start_where_others_can_reach_it(home: Path) -> None:
    one = GatewayProcess(home)
    one.start(env={"KOBOSHI__CHANNELS__WEB__MAIN__HOST": "0.0.0.0"})

    assert await one.wait_exit() == 78
    assert 'host must be a loopback address, not "0.0.0.0"' in one.log
    assert "Traceback" not in one.log
    assert not (home / "koboshi.db").exists()
