"""A real homeserver of Matrix on the loopback, and people on it: Synapse, in an environment of its
own, with SQLite. Nothing of it is federated, and it limits no one."""

import atexit
import hashlib
import hmac
import secrets
import shutil
import signal
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from anyio import to_thread

from tests.harness.polling import WITHIN_S, until_asked
from tests.harness.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-synapse" / "bin" / "python"
INSTALL_S_MAX = 300
SERVER = "localhost"
SECRET = "registration-for-tests"
PASSWORD = "a-password-for-tests"
UNLIMITED = "{per_second: 100000, burst_count: 100000}"

CONFIG = """
server_name: {server}
pid_file: {folder}/synapse.pid
listeners:
  - {{port: {port}, bind_addresses: ["127.0.0.1"], type: http, tls: false,
      resources: [{{names: [client], compress: false}}]}}
database: {{name: sqlite3, args: {{database: {folder}/homeserver.db, cp_min: 1, cp_max: 4}}}}
log_config: {folder}/log.yaml
media_store_path: {folder}/media
signing_key_path: {folder}/signing.key
registration_shared_secret: {secret}
macaroon_secret_key: macaroon-for-tests
form_secret: form-for-tests
report_stats: false
trusted_key_servers: []
suppress_key_server_warning: true
federation_domain_whitelist: []
presence: {{enabled: false}}
bcrypt_rounds: 4
url_preview_enabled: false
caches: {{sync_response_cache_duration: 0s}}
rc_message: {unlimited}
rc_registration: {unlimited}
rc_room_creation: {unlimited}
rc_login: {{address: {unlimited}, account: {unlimited}, failed_attempts: {unlimited}}}
rc_joins: {{local: {unlimited}, remote: {unlimited}}}
rc_invites: {{per_room: {unlimited}, per_user: {unlimited}, per_issuer: {unlimited}}}
"""
LOG = """
version: 1
formatters: {{plain: {{format: "%(asctime)s %(name)s %(levelname)s %(message)s"}}}}
handlers: {{file: {{class: logging.FileHandler, filename: {folder}/synapse.log, formatter: plain}}}}
root: {{level: WARNING, handlers: [file]}}
"""


@dataclass(slots=True)
class Synapse:
    folder: Path
    port: int
    process: "subprocess.Popen[bytes] | None" = None
    _names: Iterator[int] = field(default_factory=lambda: count(1))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        with suppress(OSError):
            return (self.folder / "synapse.log").read_text(encoding="utf-8")[-3000:]
        return ""

    def start(self) -> None:
        """Start it; `ready` says when it serves."""
        config = str(self.folder / "homeserver.yaml")
        dies_with_us = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        command = [*dies_with_us, str(PYTHON), "-m", "synapse.app.homeserver", "-c", config]
        with (self.folder / "out.log").open("ab") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out, cwd=self.folder)

    async def ready(self) -> None:
        async with httpx2.AsyncClient(trust_env=False) as http:

            async def look() -> bool:
                assert self.process is not None
                assert self.process.poll() is None, self.log
                try:
                    return (await http.get(f"{self.url}/health")).status_code == 200
                except httpx2.TransportError:
                    return False

            await until_asked(look, "the homeserver serves")

    async def stop(self, how: int = signal.SIGTERM) -> None:
        """End it, and wait for that."""
        process, self.process = self.process, None
        if process is not None:
            process.send_signal(how)
            await to_thread.run_sync(process.wait)

    def bury(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    async def person(self, name: str, *, is_admin: bool = False) -> "Person":
        """A new person with an account: the name gets a number that no other one has."""
        user = f"{name}{next(self._names)}"
        async with httpx2.AsyncClient(base_url=self.url, trust_env=False) as http:
            place = "/_synapse/admin/v1/register"
            nonce = (await http.get(place)).json()["nonce"]
            parts = (nonce, user, PASSWORD, "admin" if is_admin else "notadmin")
            mac = hmac.new(SECRET.encode(), "\0".join(parts).encode(), hashlib.sha1).hexdigest()
            body = {"nonce": nonce, "username": user, "password": PASSWORD, "mac": mac}
            body |= {"admin": is_admin}
            made = (await http.post(place, json=body)).json()
        return Person(server=self, user=made["user_id"], token=made["access_token"])

    async def token_without_device(self, user: str) -> str:
        """A token for the account that an administrator has made."""
        admin = await self.person("admin", is_admin=True)
        headers = {"Authorization": f"Bearer {admin.token}"}
        async with httpx2.AsyncClient(base_url=self.url, trust_env=False, headers=headers) as http:
            made = await http.post(f"/_synapse/admin/v1/users/{quote(user)}/login", json={})
        return str(made.json()["access_token"])


@dataclass(slots=True)
class Person:
    """A client of Matrix by plain HTTP: it shares no code with ours."""

    server: Synapse
    user: str
    token: str = field(repr=False)
    _keys: Iterator[int] = field(default_factory=lambda: count(1))

    async def ask(self, method: str, path: str, body: object = None, **query: object) -> Any:
        """What the server answers. Fails for anything but 200."""
        headers = {"Authorization": f"Bearer {self.token}"}
        async with httpx2.AsyncClient(
            base_url=self.server.url, trust_env=False, headers=headers, timeout=WITHIN_S
        ) as http:
            params = {name: str(value) for name, value in query.items()}
            answer = await http.request(
                method, f"/_matrix/client/v3{path}", params=params, json=body
            )
        assert answer.status_code == 200, f"{method} {path}: {answer.text}\n{self.server.log}"
        return answer.json()

    async def room(self, *invited: str, direct: bool = True, **more: object) -> str:
        """A new room with these people invited."""
        body = {"invite": list(invited), "is_direct": direct, "preset": "private_chat", **more}
        return str((await self.ask("POST", "/createRoom", body))["room_id"])

    async def join(self, room: str) -> None:
        await self.ask("POST", f"/join/{quote(room)}", {})

    async def invite(self, room: str, user: str) -> None:
        await self.ask("POST", f"/rooms/{quote(room)}/invite", {"user_id": user})

    async def say(self, room: str, text: str, **more: object) -> str:
        """Write to a room. Returns the id of the event."""
        return await self.send(room, "m.room.message", {"msgtype": "m.text", "body": text, **more})

    async def send(self, room: str, kind: str, content: dict[str, Any], key: str = "") -> str:
        key = key or f"{secrets.token_hex(4)}-{next(self._keys)}"
        path = f"/rooms/{quote(room)}/send/{kind}/{key}"
        return str((await self.ask("PUT", path, content))["event_id"])

    async def upload(self, content: bytes) -> str:
        """Give the server a file. Returns its address."""
        headers = {"Authorization": f"Bearer {self.token}"}
        async with httpx2.AsyncClient(trust_env=False, headers=headers, timeout=WITHIN_S) as http:
            place = f"{self.server.url}/_matrix/media/v3/upload"
            return str((await http.post(place, content=content)).json()["content_uri"])

    async def log_in_again(self) -> "Person":
        """The same person with another device."""
        body = {
            "type": "m.login.password",
            "identifier": {"type": "m.id.user", "user": self.user},
            "password": PASSWORD,
        }
        token = (await self.ask("POST", "/login", body))["access_token"]
        return Person(server=self.server, user=self.user, token=token)

    async def events(self, room: str) -> list[dict[str, Any]]:
        """All that happened in a room, oldest first."""
        found: list[dict[str, Any]] = []
        place: str | None = None
        while True:
            query: dict[str, object] = {"dir": "b", "limit": 200}
            if place is not None:
                query["from"] = place
            page = await self.ask("GET", f"/rooms/{quote(room)}/messages", **query)
            found += page["chunk"]
            place = page.get("end")
            if place is None or not page["chunk"]:
                return found[::-1]

    async def hears(self, room: str, text: str, by: str) -> dict[str, Any]:
        """Wait until another person has said something that holds `text`."""

        async def look() -> dict[str, Any] | None:
            said = [event for event in await self.events(room) if event["sender"] == by]
            found = [event for event in said if text in event["content"].get("body", "")]
            return found[0] if found else None

        return await until_asked(look, f"{by} says {text!r}")

    async def said_by(self, room: str, user: str) -> list[str]:
        """What a person has said in a room, in order."""
        return [
            event["content"].get("body", "")
            for event in await self.events(room)
            if event["type"] == "m.room.message" and event["sender"] == user
        ]


@cache
def shared_homeserver() -> Synapse:
    """One for all tests of this process that do not end it. It is ended with the process."""
    folder = TemporaryDirectory(prefix="synapse-")
    server = _begun(Path(folder.name))
    atexit.register(folder.cleanup)
    atexit.register(server.bury)
    return server


@contextmanager
def a_homeserver(folder: Path) -> Iterator[Synapse]:
    """One that is started, and ended at the end."""
    server = _begun(folder)
    try:
        yield server
    finally:
        server.bury()


def _begun(folder: Path) -> Synapse:
    _install()
    port = free_port()
    key = b64encode(secrets.token_bytes(32)).decode().rstrip("=")
    (folder / "signing.key").write_text(f"ed25519 a_test {key}\n", encoding="ascii")
    (folder / "log.yaml").write_text(LOG.format(folder=folder), encoding="ascii")
    config = CONFIG.format(
        server=SERVER, folder=folder, port=port, secret=SECRET, unlimited=UNLIMITED
    )
    (folder / "homeserver.yaml").write_text(config, encoding="ascii")
    server = Synapse(folder, port)
    server.start()
    return server


def _install() -> None:
    """Quick when `make test` has made the environment."""
    made = subprocess.run(
        [ROOT / "scripts" / "side_environment.sh", "synapse"],
        capture_output=True,
        text=True,
        timeout=INSTALL_S_MAX,
        check=False,
    )
    if made.returncode:
        pytest.fail(f"the homeserver cannot be had:\n{made.stderr[-2000:]}")
