"""A throw-away PostgreSQL for the tests: a cluster of its own in a folder, reached by a socket in
it and by nothing else.

`KOBOSHI_TEST_POSTGRES=url` names a server to use instead; its user must be allowed to make
databases. Where there is neither, tests are skipped with the reason, or fail if
`KOBOSHI_TEST_REQUIRE` names `postgres`.
"""

import atexit
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NoReturn

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.harness.polling import LOOK_EVERY_S, WITHIN_S

SERVER = "KOBOSHI_TEST_POSTGRES"
REQUIRED = "KOBOSHI_TEST_REQUIRE"
USER, STANDBY = "koboshi", "standby"
LOOKS_MAX = int(WITHIN_S / LOOK_EVERY_S)
_DEBIAN = Path("/usr/lib/postgresql")
_MEMORY = Path("/dev/shm")
_MEMORY_BYTES_MIN = 1 << 30
_SETTINGS = {
    "listen_addresses": "",
    # Nothing here outlives the tests, and no test cuts the power of this machine.
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "max_connections": "60",
    "shared_buffers": "32MB",
    "max_wal_size": "256MB",
}


class NoPostgres(Exception):
    """Why there is none."""


@dataclass(slots=True)
class Cluster:
    """A server in a folder, owned by this process and ended with it."""

    folder: Path
    programs: Path
    settings: Mapping[str, str] = field(default_factory=lambda: _SETTINGS)
    server: "subprocess.Popen[bytes] | None" = None

    def url(self, database: str = "postgres") -> str:
        return make_conninfo(host=str(self.folder), user=USER, dbname=database)

    @property
    def socket(self) -> Path:
        return self.folder / ".s.PGSQL.5432"

    def make(self) -> None:
        said = subprocess.run(
            [
                *_as_postgres(),
                str(self.programs / "initdb"),
                *("--no-sync", "--auth=trust", f"--username={USER}"),
                *("--encoding=UTF8", "--locale=C", "--wal-segsize=1"),
                f"--pgdata={self.folder / 'data'}",
            ],
            cwd=self.folder,
            capture_output=True,
            check=False,
        )
        if said.returncode != 0:
            raise NoPostgres(f"initdb: {said.stderr.decode(errors='replace').strip()}")

    def start(self) -> None:
        """Start the server; it ends when the thread that called this does."""
        settings = {**self.settings, "unix_socket_directories": str(self.folder)}
        options = [f"--{name}={value}" for name, value in settings.items()]
        with (self.folder / "log").open("ab") as log:
            self.server = subprocess.Popen(
                [
                    *_as_postgres("--pdeathsig", "QUIT"),
                    str(self.programs / "postgres"),
                    *("-D", str(self.folder / "data")),
                    *options,
                ],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        for _ in range(LOOKS_MAX):
            if self._answers():
                return
            threading.Event().wait(LOOK_EVERY_S)
        raise NoPostgres("the server does not answer")

    def _answers(self) -> bool:
        assert self.server is not None
        if self.server.poll() is not None:
            raise NoPostgres((self.folder / "log").read_text(errors="replace"))
        try:
            psycopg.connect(self.url(), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self) -> None:
        """End it as a crash of the server would."""
        if self.server is not None:
            with suppress(ProcessLookupError):
                self.server.send_signal(signal.SIGQUIT)
            self.server.wait()
            self.server = None

    def ask(self, query: str) -> object:
        """One value; None of a statement that gives none."""
        with psycopg.connect(self.url(), autocommit=True) as server:
            cursor = server.execute(query.encode())
            found = cursor.fetchone() if cursor.description else None
        return None if found is None else found[0]

    def promote(self) -> None:
        """A standby becomes the server, with what it has got."""
        assert self.ask("SELECT pg_promote(true, 60)"), "it was not promoted"

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def a_standby(of: Cluster, settings: Mapping[str, str] | None = None) -> Cluster:
    """A copy of a cluster that runs, which follows it from now on. Raises NoPostgres."""
    standby = Cluster(_new_folder(None), of.programs, settings or of.settings)
    try:
        said = subprocess.run(
            [
                *_as_postgres(),
                str(of.programs / "pg_basebackup"),
                *("--no-sync", "--checkpoint=fast", "--write-recovery-conf"),
                f"--dbname={of.url()} application_name={STANDBY}",
                f"--pgdata={standby.folder / 'data'}",
            ],
            cwd=standby.folder,
            capture_output=True,
            check=False,
        )
        if said.returncode != 0:
            raise NoPostgres(f"pg_basebackup: {said.stderr.decode(errors='replace').strip()}")
        standby.start()
    except BaseException:
        standby.remove()
        raise
    atexit.register(standby.remove)
    return standby


def a_cluster(parent: Path | None = None, settings: Mapping[str, str] = _SETTINGS) -> Cluster:
    """A new cluster that runs, in a folder below `parent` or, without one, in memory if there is
    room. Raises NoPostgres."""
    cluster = Cluster(_new_folder(parent), programs_of_postgres(), settings)
    try:
        cluster.make()
        cluster.start()
    except BaseException:
        cluster.remove()
        raise
    atexit.register(cluster.remove)
    return cluster


@cache
def _server_url() -> str:
    """The server of this test process; made when it is first asked for."""
    return os.environ.get(SERVER) or a_cluster().url()


def server_url() -> str:
    """The address of a server where databases can be made. Skips the test where there is none."""
    try:
        return _server_url()
    except NoPostgres as error:
        refuse_or_skip(str(error))


def server_socket() -> Path:
    """The socket of the server. Skips the test where it is reached in another way."""
    place = conninfo_to_dict(server_url())
    folder, port = str(place.get("host", "")), place.get("port") or 5432
    if not folder.startswith("/"):
        refuse_or_skip(f"the server at {folder} has no socket here")
    return Path(folder, f".s.PGSQL.{port}")


def refuse_or_skip(reason: str) -> NoReturn:
    if "postgres" in os.environ.get(REQUIRED, "").split(","):
        pytest.fail(f"PostgreSQL is required here: {reason}")
    pytest.skip(f"PostgreSQL: {reason}")


def programs_of_postgres() -> Path:
    """The folder with `initdb` and `postgres`, which Debian keeps out of PATH. Raises
    NoPostgres."""
    for folder in _places():
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise NoPostgres(f"no server is installed, and {SERVER} names none")


def _places() -> Iterator[Path]:
    if asked := shutil.which("pg_config"):
        said = subprocess.run([asked, "--bindir"], capture_output=True, text=True, check=False)
        yield Path(said.stdout.strip())
    versions = [each for each in _DEBIAN.glob("*/bin") if each.parent.name.isdigit()]
    yield from sorted(versions, key=lambda each: int(each.parent.name), reverse=True)
    if found := shutil.which("initdb"):
        yield Path(found).parent


def _as_postgres(*more: str) -> list[str]:
    """What runs a program as the user that may run a server: root may not."""
    if shutil.which("setpriv") is None:
        raise NoPostgres("setpriv is not installed")
    if os.geteuid() != 0:
        return ["setpriv", *more] if more else []
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", *more]


def _new_folder(parent: Path | None) -> Path:
    """A folder that the user of the server can reach. The name of a socket in it must be short."""
    if parent is None:
        has_room = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _MEMORY_BYTES_MIN
        parent = _MEMORY if has_room else Path("/tmp")
    folder = Path(tempfile.mkdtemp(prefix="koboshi-postgres-", dir=parent))
    if os.geteuid() == 0:
        try:
            user = pwd.getpwnam("postgres")
        except KeyError as error:
            raise NoPostgres("there is no user postgres") from error
        os.chown(folder, user.pw_uid, user.pw_gid)
    return folder
