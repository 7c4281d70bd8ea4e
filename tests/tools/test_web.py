"""`web_fetch` and `web_search` against local servers: what is reached, and what is shown."""

import gzip
import json
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.abc
import pytest

from koboshi.app.builders.parsers import parsers_of
from koboshi.config import Config
from koboshi.domain.transcript import Effect
from koboshi.ports.parsers import NotParsed, ParserKind
from koboshi.ports.tool import ToolFailed
from koboshi.processes.parsers.locked import LockedParsers
from koboshi.tools.web.fetch import fetch_text
from koboshi.tools.web.getting import NotFetched, Reach, WebClient
from koboshi.tools.web.search import NotSearched, engine_of
from koboshi.tools.web.settings import EngineName, WebSettings
from koboshi.tools.web.tools import DATA_NOTE, PAGE_CHARS_MAX, web_tools
from tests.harness.pages import PageAnswer, PageServer, page, serving
from tests.harness.tool_context import CONTEXT

SETTINGS = WebSettings(user_agent="koboshi/test")


def allowed(server: PageServer) -> WebSettings:
    return replace(SETTINGS, hosts=frozenset({f"127.0.0.1:{server.port}"}))


def client(server: PageServer, **changes: object) -> WebClient:
    reach = Reach(hosts=frozenset({f"127.0.0.1:{server.port}"}))
    return replace(WebClient(user_agent="koboshi/test", reach=reach), **changes)  # type: ignore[arg-type]


@pytest.fixture
def parsers(tmp_path: Path) -> LockedParsers:
    return parsers_of(Config(home=tmp_path / "home"), {"PATH": "/usr/bin:/bin"})


# What is reached.


@pytest.mark.parametrize(
    "host",
    """127.0.0.1 localhost 127.1 2130706433 0x7f000001 017700000001 0 [::1] [::ffff:127.0.0.1]
    [::ffff:7f00:1] 127。0。0。1 LOCALHOST localhost. 127.0.0.1. %31%32%37.0.0.1
    ①②⑦.0.0.1""".split(),
)
async def test_no_spelling_of_this_machine_is_reached(host: str) -> None:
    async with serving(secret=page()) as server:
        with pytest.raises(NotFetched):
            await WebClient(user_agent="x").get(f"http://{host}:{server.port}/secret")

        assert server.asked == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_to_this_machine_is_not_followed(status: int) -> None:
    async with serving(secret=page()) as inner, serving() as outer:
        place = f"http://localhost:{inner.port}/secret"
        outer.answers["/go"] = PageAnswer(status=status, headers={"Location": place})
        with pytest.raises(NotFetched, match="not an address of the public Internet"):
            await client(outer).get(f"http://127.0.0.1:{outer.port}/go")

        assert len(outer.asked) == 1
        assert inner.asked == []


@pytest.mark.parametrize(
    "place", ["file:///etc/passwd", "ftp://x/", "gopher://x/", "unix:/run/x", "javascript:1", "//"]
)
async def test_a_redirect_to_something_else_than_the_web_is_not_followed(place: str) -> None:
    async with serving(go=PageAnswer(status=302, headers={"Location": place})) as server:
        with pytest.raises(NotFetched):
            await client(server).get(f"http://127.0.0.1:{server.port}/go")


async def test_a_name_with_one_private_address_among_public_ones_is_refused() -> None:
    async def resolve(_host: str, _port: int) -> tuple[str, ...]:
        return "93.184.216.34", "127.0.0.1"

    with pytest.raises(NotFetched, match=r"is at 127\.0\.0\.1"):
        await WebClient(user_agent="x", resolve=resolve).get("http://two.test/")


async def test_a_second_answer_of_the_name_server_does_not_count() -> None:
    """The name is public when it is looked at, and private the next time (DNS rebinding)."""
    answers = [("127.0.0.1",), ("192.0.2.1",)]
    asked: list[str] = []

    async def resolve(host: str, _port: int) -> tuple[str, ...]:
        asked.append(host)
        return answers[len(asked) - 1]

    async with serving(page=page(b"hello", "text/plain")) as server:
        reach = Reach(hosts=frozenset({f"wiki.lan:{server.port}"}))
        got = await WebClient(user_agent="x", resolve=resolve, reach=reach).get(
            f"http://wiki.lan:{server.port}/page"
        )

    assert got.body == b"hello"
    assert asked == ["wiki.lan"]


async def test_our_own_port_is_never_reached_even_if_the_host_is_named() -> None:
    async with serving(secret=page()) as server:
        reach = Reach(hosts=frozenset({"localhost"}), own_ports=frozenset({server.port}))
        with pytest.raises(NotFetched, match="not an address of the public"):
            await WebClient(user_agent="x", reach=reach).get(
                f"http://localhost:{server.port}/secret"
            )

        assert server.asked == []


@pytest.mark.parametrize("hosts", [frozenset(), frozenset({"this.test"})])
async def test_this_machine_is_not_reached_by_a_public_address_of_its_own(
    monkeypatch: pytest.MonkeyPatch, hosts: frozenset[str]
) -> None:
    """A server in the Internet has one. What listens there behind a firewall, and our own page,
    would take the gateway for a neighbour."""

    async def resolve(_host: str, _port: int) -> tuple[str, ...]:
        return ("127.0.0.1",)

    monkeypatch.setattr("koboshi.tools.web.getting.is_public", lambda _address: True)
    async with serving(secret=page()) as server:
        reach = Reach(hosts=hosts, own_ports=frozenset({server.port}))
        with pytest.raises(NotFetched, match=r"127\.0\.0\.1, which is this machine"):
            await WebClient(user_agent="x", resolve=resolve, reach=reach).get(
                f"http://this.test:{server.port}/secret"
            )

        assert server.asked == []


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(page=page(b"direct", "text/plain")) as server, serving() as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{proxy.port}")
        got = await client(server).get(f"http://127.0.0.1:{server.port}/page")

        assert (got.body, proxy.asked) == (b"direct", [])


@pytest.mark.parametrize(
    "url", ["http://a:b@x.test/", "http:///x", "x.test", "http://x.test:0/", "http://x.test:99999/"]
)
async def test_an_address_that_is_none_is_refused_in_words(url: str) -> None:
    with pytest.raises(NotFetched, match="address"):
        await WebClient(user_agent="x").get(url)


# How much is read.


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_a_small_body_that_unpacks_to_a_large_one_is_cut(encoding: str) -> None:
    pack: Callable[[bytes], bytes] = gzip.compress if encoding == "gzip" else zlib.compress
    bomb = pack(bytes(50_000_000))
    async with serving(bomb=page(bomb, "text/plain", Content_Encoding=encoding)) as server:
        got = await client(server, body_bytes_max=1_000_000).get(
            f"http://127.0.0.1:{server.port}/bomb"
        )

    assert got.is_cut
    assert len(got.body) == 1_000_000


async def test_deflate_without_its_wrapping_is_read_too() -> None:
    packer = zlib.compressobj(wbits=-15)
    body = packer.compress(b"bare words") + packer.flush()
    async with serving(bare=page(body, "text/plain", Content_Encoding="deflate")) as server:
        got = await client(server).get(f"http://127.0.0.1:{server.port}/bare")

    assert got.body == b"bare words"


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "nonsense"])
async def test_an_encoding_that_was_not_asked_for_is_refused(encoding: str) -> None:
    async with serving(odd=page(b"xx", "text/plain", Content_Encoding=encoding)) as server:
        with pytest.raises(NotFetched, match="which was not asked for"):
            await client(server).get(f"http://127.0.0.1:{server.port}/odd")


async def test_what_follows_a_packed_body_is_not_read() -> None:
    """Else a server could go on for as long as it likes, and all of it would be kept."""

    async def talkative(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            head = b"HTTP/1.1 200 X\r\nContent-Encoding: gzip\r\nContent-Type: text/plain\r\n\r\n"
            await stream.send(head + gzip.compress(b"all of it") + bytes(100))
            await anyio.sleep_forever()

    async with listening(talkative) as port:
        reach = Reach(hosts=frozenset({"127.0.0.1"}))
        got = await WebClient(user_agent="x", reach=reach).get(f"http://127.0.0.1:{port}/")

    assert (got.body, got.is_cut) == (b"all of it", False)


async def test_redirects_without_end_end() -> None:
    async with serving(round=PageAnswer(status=302, headers={"Location": "/round"})) as server:
        with pytest.raises(NotFetched, match="redirects more than 5 times"):
            await client(server).get(f"http://127.0.0.1:{server.port}/round")

        assert len(server.asked) == 6


async def test_a_server_that_says_nothing_is_given_up() -> None:
    async def silent(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await anyio.sleep_forever()

    reach = Reach(hosts=frozenset({"127.0.0.1"}))
    async with listening(silent) as port:
        with pytest.raises(NotFetched, match=r"longer than|in time"):
            await WebClient(user_agent="x", reach=reach, seconds_max=0.2).get(
                f"http://127.0.0.1:{port}/"
            )


@asynccontextmanager
async def listening(
    serve: Callable[[anyio.abc.SocketStream], Awaitable[None]],
) -> AsyncIterator[int]:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield listener.extra(anyio.abc.SocketAttribute.local_port)
        tasks.cancel_scope.cancel()


# What the model is shown.


async def test_a_page_is_shown_as_its_text_and_as_data(parsers: LockedParsers) -> None:
    async with serving(a=page()) as server:
        fetch, _ = web_tools(allowed(server), parsers)
        url = f"http://127.0.0.1:{server.port}/a"
        answer = await fetch.run(json.dumps({"url": url}), CONTEXT)

    told = json.loads(answer.text)
    assert (told["status"], told["title"], told["url"]) == ("ok", "The title", url)
    assert told["note"] == DATA_NOTE
    assert "dolls that get up again" in told["text"]
    assert "Menu" not in told["text"]
    assert "[koboshi]" not in told["text"]
    assert fetch.effect_of("{}") is Effect.NONE


async def test_a_long_text_is_shown_piece_by_piece(parsers: LockedParsers) -> None:
    words = "".join(f"{number:07d} " for number in range(10_000))
    async with serving(long=page(words.encode(), "text/plain")) as server:
        fetch, _ = web_tools(allowed(server), parsers)
        url = f"http://127.0.0.1:{server.port}/long"
        first = json.loads((await fetch.run(json.dumps({"url": url}), CONTEXT)).text)
        rest = json.loads(
            (await fetch.run(json.dumps({"url": url, "offset": PAGE_CHARS_MAX}), CONTEXT)).text
        )

    assert first["next_offset"] == PAGE_CHARS_MAX
    assert first["text"] + rest["text"] == words
    assert "next_offset" not in rest


@pytest.mark.parametrize("charset", ["punycode", "idna", "unicode_escape", "zlib", "nonsense"])
async def test_a_charset_that_is_none_of_pages_is_not_used(
    parsers: LockedParsers, charset: str
) -> None:
    """Python knows codecs that take minutes for a megabyte (punycode), and the loop would stand
    still; the next start would fetch the same page again."""
    body = "grün-99ab \\x41".encode()
    async with serving(odd=page(body, f"text/plain; charset={charset}")) as server:
        got = await fetch_text(f"http://127.0.0.1:{server.port}/odd", allowed(server), parsers)

    assert got.text == body.decode()


@pytest.mark.parametrize(
    "charset", ["ISO-8859-1", "windows-1252", "latin1", "utf-8", "UTF-16", "gb18030", "cp850"]
)
async def test_charsets_of_pages_are_read(parsers: LockedParsers, charset: str) -> None:
    text = page("grün".encode(charset), f"text/plain; charset={charset}")
    async with serving(a=text) as server:
        got = await fetch_text(f"http://127.0.0.1:{server.port}/a", allowed(server), parsers)

    assert got.text == "grün"


async def test_what_is_no_text_is_refused_in_words(parsers: LockedParsers) -> None:
    async with serving(movie=page(b"\0\1", "video/mp4")) as server:
        fetch, _ = web_tools(allowed(server), parsers)
        with pytest.raises(ToolFailed, match="no text but video/mp4"):
            await fetch.run(json.dumps({"url": f"http://127.0.0.1:{server.port}/movie"}), CONTEXT)


@pytest.mark.parametrize(
    "body",
    [b"", b"<", b"<html>" * 3_000, b"\xff\xfe\x00", b"<html><body>" + b"<div>" * 5_000 + b"x"],
)
async def test_a_hostile_page_gives_text_or_words(parsers: LockedParsers, body: bytes) -> None:
    async with serving(odd=page(body)) as server:
        got = await read_or_told(f"http://127.0.0.1:{server.port}/odd", server, parsers)

    assert isinstance(got, str)


async def read_or_told(url: str, server: PageServer, parsers: LockedParsers) -> str:
    try:
        return (await fetch_text(url, allowed(server), parsers)).text
    except NotFetched as error:
        return str(error)


# Searching.


@pytest.mark.parametrize(
    "engine, answer",
    [
        ("searxng", {"results": [{"title": "A", "url": "https://a.test", "content": "a word"}]}),
        ("tavily", {"results": [{"title": "A", "url": "https://a.test", "content": "a word"}]}),
        (
            "brave",
            {
                "web": {
                    "results": [{"title": "A", "url": "https://a.test", "description": "a word"}]
                }
            },
        ),
    ],
)
async def test_each_engine_is_asked_in_its_own_way(
    parsers: LockedParsers, engine: EngineName, answer: dict[str, object]
) -> None:
    async with serving(search=page(json.dumps(answer).encode(), "application/json")) as server:
        url = f"http://127.0.0.1:{server.port}" + ("" if engine == "searxng" else "/search")
        settings = replace(SETTINGS, engine=engine, engine_url=url, engine_key="k3y")
        hits = await engine_of(settings, parsers).search("red dolls", 3)

    assert [(hit.title, hit.url, hit.text) for hit in hits] == [("A", "https://a.test", "a word")]
    head = server.asked[0]
    assert (b"k3y" in head) == (engine != "searxng")
    assert head.startswith(b"POST" if engine == "tavily" else b"GET /search?q=red")


@pytest.mark.parametrize(
    "answer, words",
    [
        (PageAnswer(status=401), "refuses the key"),
        (PageAnswer(status=429), "too many searches"),
        (PageAnswer(status=500), "answered 500"),
        (page(b"<html>", "text/html"), "something else than hits"),
    ],
)
async def test_an_engine_that_fails_is_told_in_words(
    parsers: LockedParsers, answer: PageAnswer, words: str
) -> None:
    async with serving(search=answer) as server:
        url = f"http://127.0.0.1:{server.port}"
        settings = replace(SETTINGS, engine="searxng", engine_url=url)
        with pytest.raises(NotSearched, match=words):
            await engine_of(settings, parsers).search("x", 3)


# The parsers.


async def test_a_parser_that_dies_is_told_and_leaves_nothing(
    parsers: LockedParsers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NotParsed, match="its parser"):
        await with_program(parsers, monkeypatch, tmp_path, "import os; os.kill(os.getpid(), 9)")


async def test_a_parser_sees_no_network_no_home_and_no_other_process(
    parsers: LockedParsers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "home" / "secret"
    secret.parent.mkdir(exist_ok=True)
    secret.write_text("canary")
    async with serving(secret=page()) as server:
        program = f"""
import json, os, socket, sys
def tried(what):
    try:
        return repr(what())
    except OSError as error:
        return "refused"
print(json.dumps([
    tried(lambda: socket.create_connection(("127.0.0.1", {server.port}), 2)),
    tried(lambda: open({str(secret)!r}).read()),
    tried(lambda: os.kill({__import__("os").getpid()}, 0)),
    tried(lambda: open("/etc/shadow").read()),
]))"""
        said = await with_program(parsers, monkeypatch, tmp_path, program)

    assert json.loads(said) == ["refused"] * 4


async def test_a_parser_that_is_too_slow_or_says_too_much_is_ended(
    parsers: LockedParsers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = replace(parsers, limits=replace(parsers.limits, seconds_max=1.0))
    with pytest.raises(NotParsed, match="longer than 1 seconds"):
        await with_program(slow, monkeypatch, tmp_path, "import time; time.sleep(600)")
    loud = replace(parsers, limits=replace(parsers.limits, output_bytes_max=1_000))
    with pytest.raises(NotParsed, match="more than 1000 bytes"):
        await with_program(loud, monkeypatch, tmp_path, "print('x' * 100_000)")


async def with_program(
    parsers: LockedParsers, monkeypatch: pytest.MonkeyPatch, folder: Path, text: str
) -> bytes:
    """Run another program in the place of the parser of pages, inside the same boundary."""
    program = folder / "program" / "page_program.py"
    program.parent.mkdir(exist_ok=True)
    program.write_text(text)
    for module in ("koboshi.processes.parsers.locked", "koboshi.app.builders.parsers"):
        monkeypatch.setattr(f"{module}.program_of", lambda _kind: program)
    return await parsers.parse(ParserKind.PAGE, b"")
