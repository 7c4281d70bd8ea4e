"""What `koboshi doctor` looks at where the store is a server: pure functions from facts to
findings."""

import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from koboshi import __version__
from koboshi.cli.doctor.checks import DoctorFinding, Severity
from koboshi.cli.options import WRONG_SETUP
from koboshi.config import Config
from koboshi.config.likeness import config_fingerprint
from koboshi.config.platforms import WebConfig
from koboshi.domain.durations import duration
from koboshi.domain.fingerprint import Configured, sections_apart
from koboshi.domain.standby import is_waited_for, standby_words
from koboshi.ports.server import LivingNode, ServerFacts, ServerRefusal

CONNECTIONS = 4
"""What one gateway has."""
ROUND_TRIP_MS_MAX = 5.0
CLOCK_MS_MAX = 2_000
SILENT_MS_MAX = 15_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerView:
    """The server, and what of this machine matters for it."""

    server: ServerFacts
    node: str
    home: str
    """The id of the home, empty if it has none yet."""
    has_web: bool
    has_token: bool
    fingerprint: str = ""
    """How this home is configured now."""


def examine_store(config: Config) -> tuple[tuple[str, DoctorFinding], ...]:
    """Every finding about the server of a configuration, with the name of its check."""
    if not config.store.url:
        return ()
    from koboshi.app.server_look import server_facts

    facts = server_facts(config)
    if isinstance(facts, ServerRefusal):
        remedy = "see that it runs, that store.url is right, and that the role may connect"
        return (("server", _found(Severity.ERROR, facts.words, remedy)),)
    webs = [each for each in config.channels if isinstance(each, WebConfig) and each.enabled]
    view = ServerView(
        server=facts,
        node=config.gateway.node or socket.gethostname(),
        home=_home_id(config),
        has_web=bool(webs),
        has_token=all(each.token is not None for each in webs),
        fingerprint=config_fingerprint(config),
    )
    return tuple((name, found) for name, check in CHECKS.items() for found in check(view))


def check_server(view: ServerView) -> Iterator[DoctorFinding]:
    server = view.server
    words = f"{server.name}, {server.round_trip_ms:.1f} ms away"
    if server.is_standby:
        remedy = "name the primary, or add target_session_attrs=read-write to store.url"
        yield _found(Severity.ERROR, f"{words}: it is a standby and takes no writes", remedy)
    elif server.round_trip_ms > ROUND_TRIP_MS_MAX:
        remedy = "every message takes some dozens of round trips: run the gateway near the server"
        yield _found(Severity.WARNING, words, remedy)
    else:
        yield _found(Severity.OK, words)


def check_durability(view: ServerView) -> Iterator[DoctorFinding]:
    server = view.server
    for name, value in (("fsync", server.fsync), ("synchronous_commit", server.synchronous_commit)):
        if value == "off":
            yield _found(
                Severity.ERROR,
                f"{name} is off: the server would lose what it has acknowledged",
                f"set {name} = on; a gateway refuses to start",
                WRONG_SETUP,
            )
    if "off" not in (server.fsync, server.synchronous_commit):
        yield _found(Severity.OK, f"fsync on, synchronous_commit {server.synchronous_commit}")


def check_standby(view: ServerView) -> Iterator[DoctorFinding]:
    names, commit = view.server.standby_names, view.server.synchronous_commit
    words = standby_words(names, commit, view.server.standbys)
    if is_waited_for(names, commit) and not view.server.standbys:
        # A role without pg_monitor sees them, but not how they stand.
        remedy = "commits wait until one is connected; see pg_stat_replication"
        yield _found(Severity.WARNING, f"{words}; none is connected", remedy)
    elif is_waited_for(names, commit):
        yield _found(Severity.OK, words)
    else:
        remedy = "synchronous_standby_names makes it certain; docs/scale-out.md has the promises"
        yield _found(Severity.NOTE, words, remedy)


def check_clock(view: ServerView) -> Iterator[DoctorFinding]:
    ahead_ms = view.server.clock_ahead_ms
    if abs(ahead_ms) > CLOCK_MS_MAX:
        way = "ahead of" if ahead_ms > 0 else "behind"
        words = f"the server's is {duration(abs(ahead_ms))} {way} that of this machine"
        yield _found(
            Severity.WARNING, words, "the server's counts; let both be kept: timedatectl set-ntp"
        )
    else:
        yield _found(Severity.OK, f"the server's differs by {abs(ahead_ms)} ms from this machine's")


def check_timeouts(view: ServerView) -> Iterator[DoctorFinding]:
    idle = view.server.idle_timeout
    if view.server.is_pooled:
        yield _found(
            Severity.WARNING,
            "a pooler stands between: settings, locks and prepared statements of a connection may "
            "be those of another",
            "connect directly: a gateway has four connections and needs no pooler",
        )
    if idle in ("0", ""):
        yield _found(
            Severity.ERROR,
            "idle_in_transaction_session_timeout does not hold: a gateway that stands still would "
            "keep its chats locked",
            "set it to 3s for the role of the gateway (ALTER ROLE), or connect without a pooler",
            WRONG_SETUP,
        )
    elif not view.server.is_pooled:
        yield _found(Severity.OK, f"a batch that stands still is ended after {idle}; no pooler")


def check_database(view: ServerView) -> Iterator[DoctorFinding]:
    server = view.server
    if server.encoding != "UTF8":
        words = f"the encoding is {server.encoding}, and must be UTF8"
        yield _found(Severity.ERROR, words, "make a database with ENCODING 'UTF8'", WRONG_SETUP)
    if server.rows_are:
        words = f"its rows were moved, or are not all here: {server.rows_are}"
        yield _found(Severity.ERROR, words, "repeat `koboshi move`", WRONG_SETUP)
    if server.schema is None:
        yield _found(Severity.NOTE, "there are no tables yet; the first start makes them")
    elif server.oldest_code > server.schema_known:
        words = (
            f"schema {server.schema} is newer than this program, which knows {server.schema_known}"
        )
        yield _found(Severity.ERROR, words, "install the newer koboshi here, too", WRONG_SETUP)
    elif server.schema < server.schema_known:
        yield _found(Severity.NOTE, f"schema {server.schema}; the next start brings it forward")
    else:
        yield _found(Severity.OK, f"schema {server.schema}, {server.encoding}")


def check_connections(view: ServerView) -> Iterator[DoctorFinding]:
    left = view.server.connections_left
    words = f"{left} are left, and a gateway has {CONNECTIONS}"
    if left < CONNECTIONS:
        yield _found(Severity.WARNING, words, "raise max_connections of the server")
    else:
        yield _found(Severity.OK, words)


def check_nodes(view: ServerView) -> Iterator[DoctorFinding]:
    alive = [each for each in view.server.nodes if each.silent_ms <= SILENT_MS_MAX]
    for each in alive:
        if each.node == view.node and each.home != view.home:
            words = f"another gateway with another home is called {each.node}, too"
            yield _found(Severity.ERROR, words, "give each node a name: gateway.node", WRONG_SETUP)
    versions = sorted({each.version for each in alive})
    if len(versions) > 1:
        yield _found(
            Severity.NOTE,
            f"nodes run different versions: {', '.join(versions)}",
            "finish the upgrade; the older ones go on until then",
        )
    yield from _apart(alive, view)
    listed = ", ".join(f"{each.node} ({each.version})" for each in alive)
    yield _found(Severity.OK, f"alive: {listed}" if alive else "none is alive now")


def _apart(alive: Sequence[LivingNode], view: ServerView) -> Iterator[DoctorFinding]:
    """Nodes that run with another configuration than this home has now."""
    mine = Configured(version=__version__, fingerprint=view.fingerprint)
    for each in alive:
        other = Configured(version=each.version, fingerprint=each.fingerprint)
        if found := sections_apart(mine, other):
            is_self = each.home == view.home
            yield _found(
                Severity.NOTE if is_self else Severity.WARNING,
                f"{'this node runs' if is_self else f'{each.node} runs'} with another "
                f"configuration than this home has: {', '.join(found)}",
                "`koboshi restart` takes it up"
                if is_self
                else "configure channels, people and model alike on all nodes",
            )


def check_token(view: ServerView) -> Iterator[DoctorFinding]:
    others = {each.home for each in view.server.nodes} - {view.home}
    if view.has_web and not view.has_token and others:
        yield _found(
            Severity.WARNING,
            "the web token is this home's own: programs that know that of another node are refused",
            "set channels.web.main.token to the same value on all nodes",
        )


CHECKS: dict[str, Callable[[ServerView], Iterator[DoctorFinding]]] = {
    "server": check_server,
    "durability": check_durability,
    "standby": check_standby,
    "server clock": check_clock,
    "timeouts": check_timeouts,
    "schema": check_database,
    "connections": check_connections,
    "nodes": check_nodes,
    "web token": check_token,
}


def _home_id(config: Config) -> str:
    try:
        return (config.home / "home-id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _found(severity: Severity, words: str, remedy: str = "", code: int = 1) -> DoctorFinding:
    return DoctorFinding(severity=severity, words=words, remedy=remedy, code=code)
