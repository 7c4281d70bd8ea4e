"""Opening a model by its name: what is wrong with the configuration is said at once, in words that
help, and nothing heavy is loaded for it."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from anyio import create_task_group, fail_after

from koboshi.domain.errors import ModelBusy, ModelRefused, ModelUnusable
from koboshi.models.limits import ModelLimits
from koboshi.models.provider import open_model
from tests.fakes.model_servers import anthropic_form, google_form, openai_form
from tests.fakes.model_servers.server import Answer, Received, serving
from tests.models.asking import HELLO, KEY, PAUSE, Line, asked, call, called, found, said
from tests.models.conftest import Opened
from tests.models.forms import ANTHROPIC, OPENAI, RESPONSES

HEAVY = ("anthropic", "google", "httpx2", "openai", "pydantic", "pydantic_ai")
LIBRARIES = ("anthropic", "google.genai", "openai", "pydantic_ai", "pydantic")


def openai_line() -> Line:
    return Line(lambda received: openai_form.complain(received) or OPENAI.text("Ok."))


@pytest.mark.parametrize(
    "name,words",
    [
        ("gpt-5", 'write "openai:gpt-5", for example'),
        ("mistral:large", 'the provider "mistral" of model "mistral:large" is unknown'),
        ("Openai:gpt-5", "known providers: anthropic, google, ollama, openai"),
        ("openai:", "lacks its name"),
        ("openai: ", "lacks its name"),
    ],
)
def test_a_name_that_names_nothing_is_refused(name: str, words: str) -> None:
    with pytest.raises(ModelUnusable) as caught:
        open_model(name, api_key=KEY)

    assert words in str(caught.value)


@pytest.mark.parametrize(
    "name,variable,words",
    [
        ("openai:m", "OPENAI_API_KEY", "put it into the environment variable OPENAI_API_KEY"),
        ("openai:m", "MY_KEY", "the environment variable MY_KEY, or set api_key_env to another"),
        ("anthropic:m", "OPENAI_API_KEY", "(ANTHROPIC_API_KEY?)"),
        ("google:m", "", 'set api_key_env = "GOOGLE_API_KEY" under [model]'),
    ],
)
def test_a_missing_key_names_the_variable(name: str, variable: str, words: str) -> None:
    with pytest.raises(ModelUnusable, match="needs a key") as caught:
        open_model(name, key_variable=variable)

    assert words in str(caught.value)


@pytest.mark.parametrize("name", ["openai:m", "anthropic:m"])
def test_a_server_of_ones_own_needs_no_key(name: str) -> None:
    open_model(name, base_url="http://127.0.0.1:8000/v1")


def test_ollama_needs_no_key() -> None:
    open_model("ollama:llama3.2:3b")


@pytest.mark.parametrize(
    "module,name,remedy",
    [
        ("anthropic", "anthropic:m", 'pip install "koboshi[anthropic]"'),
        ("google.genai", "google:m", 'pip install "koboshi[google]"'),
        ("pydantic_ai", "anthropic:m", 'pip install "koboshi[anthropic]"'),
    ],
)
def test_a_missing_library_comes_with_the_remedy(
    module: str, name: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(ModelUnusable) as caught:
        open_model(name, api_key=KEY)

    assert remedy in str(caught.value)


def test_opening_a_model_loads_nothing_heavy() -> None:
    """The gateway accepts messages before it: a library takes a second."""
    program = (
        "import json, sys\n"
        "from koboshi.models.provider import open_model\n"
        "open_model('anthropic:m', api_key='k'), open_model('openai:m', api_key='k')\n"
        f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )

    assert json.loads(done.stdout) == []


@pytest.mark.parametrize("name", ["openai:m", "ollama:m"])
def test_chat_completions_take_no_library(name: str) -> None:
    """Neither to open the model nor to ask it: they need not be installed."""
    program = (
        "import json, sys, anyio\n"
        "from koboshi.models.provider import open_model\n"
        "from tests.models.asking import HELLO\n"
        "from tests.models.test_provider import openai_line\n"
        f"for name in {LIBRARIES!r}: sys.modules[name] = None\n"
        f"model = open_model({name!r}, api_key='k', transport=openai_line())\n"
        "print(anyio.run(model.respond, HELLO).text)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.splitlines()[-1] == "Ok."


async def test_a_library_is_loaded_once_for_all_who_wait(opened: Opened) -> None:
    line = openai_line()
    model = opened("openai:m", api_key=KEY, transport=line)

    async with create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(model.respond, HELLO)

    assert len(line.requests) == 5


async def test_a_library_that_loads_too_slowly_is_waited_for_no_longer(opened: Opened) -> None:
    model = opened("openai:m", api_key=KEY, transport=openai_line(), limits=ModelLimits(load_s=0))

    with fail_after(60), pytest.raises(ModelBusy, match="took too long to load"):
        await model.respond(HELLO)


def test_a_library_that_is_broken_is_refused_in_plain_words() -> None:
    program = (
        "import sys, anyio\n"
        "from koboshi.domain.errors import ModelRefused\n"
        "from koboshi.models.provider import open_model\n"
        "from tests.models.asking import HELLO\n"
        "model = open_model('anthropic:m', api_key='k')\n"
        "sys.modules['pydantic_ai'] = None\n"
        "try:\n"
        "    anyio.run(model.respond, HELLO)\n"
        "except ModelRefused as refusal:\n"
        "    print(refusal.reason)"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )

    assert "the library for anthropic:m cannot be loaded" in done.stdout


async def test_openai_is_asked_at_its_own_address(opened: Opened) -> None:
    line = openai_line()

    await opened("openai:m", api_key=KEY, transport=line).respond(HELLO)

    assert line.requests[0].headers["host"] == "api.openai.com"
    assert line.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert line.last["model"] == "m"


async def test_ollama_is_asked_on_this_machine(opened: Opened) -> None:
    line = openai_line()

    await opened("ollama:llama3.2:3b", transport=line).respond(HELLO)

    assert line.requests[0].headers["host"] == "127.0.0.1:11434"
    assert line.last["model"] == "llama3.2:3b"


async def test_the_key_of_openai_does_not_go_to_a_server_without_a_key(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another")
    line = openai_line()

    await opened("openai:m", base_url="http://127.0.0.1:8000/v1", transport=line).respond(HELLO)

    assert "sk-of-another" not in str(line.requests)


def anthropic_line() -> Line:
    return Line(lambda received: anthropic_form.complain(received) or ANTHROPIC.text("Ok."))


async def test_anthropic_is_asked_at_its_own_address(opened: Opened) -> None:
    line = anthropic_line()

    await opened("anthropic:claude-test", api_key=KEY, transport=line).respond(HELLO)

    assert line.requests[0].headers["host"] == "api.anthropic.com"
    assert KEY in str(line.requests[0].headers)


async def test_anthropic_is_asked_to_remember_the_conversation(opened: Opened) -> None:
    """Else it would read, and charge for, all of it at every step."""
    line = anthropic_line()

    await opened("anthropic:claude-test", api_key=KEY, transport=line).respond(HELLO)
    assert line.last["cache_control"]["type"] == "ephemeral"

    await opened("anthropic:m", base_url="http://127.0.0.1:8000", transport=line).respond(HELLO)
    assert "cache_control" not in json.dumps(line.last)


@pytest.mark.parametrize("base_url", ["http://127.0.0.1:8000", "http://127.0.0.1:8000/v1"])
async def test_a_server_like_anthropic_is_found_with_and_without_its_version(
    opened: Opened, base_url: str
) -> None:
    line = anthropic_line()

    await opened("anthropic:m", base_url=base_url, api_key=KEY, transport=line).respond(HELLO)

    assert line.requests[0].path.partition("?")[0] == "/v1/messages"
    assert line.requests[0].headers["x-api-key"] == KEY


HI = google_form.event([{"text": "Hi."}], "STOP")


def google_line(*pieces: bytes) -> Line:
    def answer(received: Received) -> Answer:
        return google_form.complain(received) or google_form.stream(*pieces)

    return Line(answer)


async def test_google_answers_and_calls(opened: Opened) -> None:
    line = google_line(
        google_form.event([{"text": "Wait."}]),
        google_form.event([{"functionCall": {"name": "pause", "args": {"seconds": 1}}}], "STOP"),
    )
    request = asked(said("go"), called(call("2.0")), found("2.0", "done"), tools=(PAUSE,))

    reply = await opened("google:gemini-m", api_key=KEY, transport=line).respond(request)

    assert (reply.text, reply.tokens_in, reply.tokens_out) == ("Wait.", 11, 7)
    assert [(each.tool, each.arguments) for each in reply.calls] == [("pause", '{"seconds":1}')]
    assert reply.calls[0].provider_id
    assert [content["role"] for content in line.last["contents"]] == ["user", "model", "user"]


OWN = "http://127.0.0.1:8000"


@pytest.mark.parametrize(
    "name,base_url,place",
    [
        ("openai:m", "", "max_completion_tokens"),
        ("openai:m", "https://x.openai.azure.com/v1", "max_completion_tokens"),
        ("openai:m", f"{OWN}/v1", "max_tokens"),
        ("ollama:m", "", "max_tokens"),
        ("openai-responses:m", f"{OWN}/v1", "max_output_tokens"),
        ("anthropic:claude-test", "", "max_tokens"),
        ("google:gemini-m", "", "maxOutputTokens"),
    ],
)
async def test_the_longest_reply_is_told_where_there_is_one(
    opened: Opened, name: str, base_url: str, place: str
) -> None:
    """Issue 21: no reply is longer than what was reserved for it."""
    lines = {"anthropic": anthropic_line(), "google": google_line(HI)}
    of_responses = Line(lambda _: RESPONSES.text("Ok."))
    lines |= {"openai-responses": of_responses}
    line = lines.get(name.partition(":")[0]) or openai_line()
    model = opened(name, base_url=base_url, api_key=KEY, transport=line)

    await model.respond(replace(HELLO, tokens_out_max=321))
    bounded = line.last.get("generationConfig", line.last)
    assert {name: count for name, count in bounded.items() if count == 321} == {place: 321}

    await model.respond(HELLO)
    assert "321" not in json.dumps(line.last)
    assert place not in json.dumps(line.last) or name.startswith("anthropic:")


async def test_google_over_a_real_connection(opened: Opened) -> None:
    async with serving(google_form.complain) as server:
        server.answers += [
            google_form.stream(google_form.event([{"text": "Hi."}], "STOP")),
            google_form.error(429, "slow down", "RESOURCE_EXHAUSTED"),
            google_form.error(400, "API key not valid.", "INVALID_ARGUMENT"),
            google_form.stream(google_form.event([{"text": "Hi."}], "SAFETY")),
            google_form.stream(google_form.event([], "MALFORMED_FUNCTION_CALL")),
        ]
        model = opened("google:gemini-m", base_url=server.url, api_key=KEY)

        assert (await model.respond(HELLO)).text == "Hi."
        for error in (ModelBusy, ModelRefused, ModelRefused, ModelBusy):
            with pytest.raises(error):
                await model.respond(HELLO)
        assert len(server.requests) == 5
        await model.aclose()
