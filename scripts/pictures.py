"""Make `docs/pictures/` from a real run: a terminal in which a gateway is killed in the middle of a
job, and the page after another kill. Usage: `python -m scripts.pictures`.

No line is made up: each was typed by a person or printed by a process, at the time shown.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from scripts.terminal_svg import Line, drawn
from tests.browser.conftest import NAMES
from tests.browser.visit import Visit
from tests.harness.ports import free_port

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
KOBOSHI = str(Path(sys.executable).with_name("koboshi"))
WITHIN_S = 60.0
STEPS = 8
JOB = f"for i in $(seq {STEPS}); do echo step $i | tee -a steps; sleep 1; done"
STORY = "tell me a story"


@dataclass(slots=True)
class Recording:
    """What was seen, each line with the time since the beginning."""

    began: float = field(default_factory=time.monotonic)
    lines: list[Line] = field(default_factory=list)

    def add(self, kind: str, *texts: str) -> None:
        at = time.monotonic() - self.began
        self.lines += [Line(at_s=at, kind=kind, text=text) for text in texts]


@dataclass(slots=True)
class Run:
    """`koboshi run --supervise` in a folder of its own."""

    folder: Path
    port: int
    process: "subprocess.Popen[bytes]"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def steps(self) -> list[str]:
        """What the job has left behind so far."""
        file = self.folder / "work" / "steps"
        return file.read_text().splitlines() if file.exists() else []

    def printed(self, pattern: str) -> list[str]:
        return re.findall(pattern, (self.folder / "out").read_text())

    def told(self, *arguments: str) -> str:
        command = [KOBOSHI, *arguments, "--home", str(self.home)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def status(self) -> dict[str, object]:
        answer: dict[str, object] = json.loads(self.told("status", "--json"))
        return answer

    def gateway_pid(self) -> int:
        worker = self.status()["worker"]
        assert isinstance(worker, dict)
        return int(worker["pid"])

    def connected(self) -> tuple[HTTPConnection, dict[str, str]]:
        token = (self.home / "web-token").read_text().strip()
        return HTTPConnection("127.0.0.1", self.port), {"Authorization": f"Bearer {token}"}

    def say(self, text: str) -> None:
        connection, headers = self.connected()
        headers |= {"Idempotency-Key": os.urandom(8).hex(), "Content-Type": "application/json"}
        path = "/api/v1/sessions/main/messages"
        connection.request("POST", path, json.dumps({"text": text}), headers)
        assert connection.getresponse().status == 202


def until(look: Callable[[], bool], what: str) -> None:
    deadline, never = time.monotonic() + WITHIN_S, threading.Event()
    while not look():
        assert time.monotonic() < deadline, f"{what}: not within {WITHIN_S:g} s"
        never.wait(0.02)


@contextmanager
def running() -> Iterator[Run]:
    with tempfile.TemporaryDirectory(prefix="koboshi-pictures-") as name:
        folder, port = Path(name), free_port()
        settings = {
            "KOBOSHI__CHANNELS__WEB__MAIN__PORT": str(port),
            "KOBOSHI__GATEWAY__WORKDIR": str(folder / "work"),
        }
        command = [KOBOSHI, "run", "--supervise", "--home", str(folder / "home")]
        with (folder / "out").open("wb") as out:
            process = subprocess.Popen(command, env=os.environ | settings, stdout=out, stderr=out)
        one = Run(folder, port, process)
        try:
            until(lambda: bool(one.printed("koboshi is at")), "the gateway serves")
            yield one
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(WITHIN_S)


def follow(one: Run, recording: Recording, is_over: threading.Event) -> None:
    """Tell what the gateway tells, over all of its lives, each thing once."""
    seen = ""
    while not is_over.is_set():
        try:
            connection, headers = one.connected()
            headers |= {"Last-Event-ID": seen} if seen else {}
            connection.request("GET", "/api/v1/sessions/main/events?from=start", None, headers)
            kind = ""
            for raw in connection.getresponse():
                name, _, value = raw.decode().rstrip("\n").partition(": ")
                kind = value if name == "event" else kind
                if name == "data":
                    tell(recording, kind, json.loads(value))
                elif name == "id":
                    seen = value
        except (OSError, ValueError):
            is_over.wait(0.05)


def tell(recording: Recording, kind: str, line: dict[str, str]) -> None:
    match kind:
        case "message":
            recording.add("you", f"you      {line['text']}")
        case "answer":
            first, *rest = line["text"].splitlines()
            recording.add("koboshi", f"koboshi  {first}", *(f"         {each}" for each in rest))
        case "turn" if line["rule"]:
            recording.add("koboshi", f"koboshi  {line['turn']}: {line['words']}")
        case _:
            return


def killed_in_the_middle(one: Run, recording: Recording) -> None:
    recording.add("typed", "$ koboshi run --supervise")
    recording.add("said", one.printed(r"koboshi is at http://[0-9.:]+")[0])
    is_over = threading.Event()
    follower = threading.Thread(target=follow, args=(one, recording, is_over), daemon=True)
    follower.start()
    one.say(f"run {JOB}")
    for number in range(1, STEPS + 1):
        until(lambda n=number: len(one.steps) >= n, f"step {number}")  # type: ignore[misc]
        recording.add("job", f"job      {one.steps[number - 1]}")
        if number == STEPS // 2:
            pid = one.gateway_pid()
            recording.add(
                "typed", f"$ kill -9 {pid}        # the gateway, in the middle of the job"
            )
            os.kill(pid, signal.SIGKILL)
    until(lambda: any("exited with code" in each.text for each in recording.lines), "the answer")
    assert one.steps == [f"step {number}" for number in range(1, STEPS + 1)], "it ran once"
    is_over.set()
    told = one.told("explain", "s1").splitlines()
    story = told[told.index("what happened") : told.index("messages") - 1]
    recording.add("typed", "$ koboshi explain s1")
    recording.add("said", *told[:3], told[3], "", *story)


def page_after_a_kill(one: Run) -> None:
    """The page, live, after its own button was pressed in the middle of an answer."""
    link = one.told("open").strip()
    with sync_playwright() as playwright:
        found = next(path for name in NAMES if (path := shutil.which(name)))
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        visit = Visit(browser.new_page(viewport={"width": 1280, "height": 800}))
        visit.open(link)
        visit.press("New chat")
        visit.press("Start a 60-second job")
        expect(visit.page.locator(".job .log")).to_contain_text("4 of 60 seconds")
        visit.say(STORY)
        expect(visit.page.locator(".draft")).to_contain_text("paper")
        visit.press("kill -9 the gateway now")
        expect(visit.page.locator(".timeline")).to_contain_text("fresh")
        expect(visit.page.locator(".draft")).to_contain_text("Everything is on disk")
        visit.page.screenshot(path=PICTURES / "page.png")
        browser.close()


def main() -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    with running() as one:
        recording = Recording()
        killed_in_the_middle(one, recording)
        (PICTURES / "kill.svg").write_text(drawn(recording.lines), encoding="utf-8")
        page_after_a_kill(one)


if __name__ == "__main__":
    main()
