"""Asking the database server of a configuration how it is."""

from koboshi.app.stores import MISSING
from koboshi.clock import SystemClock
from koboshi.config import Config
from koboshi.ports.server import ServerFacts, ServerRefusal


def server_facts(config: Config) -> ServerFacts | ServerRefusal:
    """Nothing is changed. The configuration names a server."""
    try:
        from koboshi.stores.postgres.examination import examine_server
    except ImportError:
        return ServerRefusal(words=MISSING)
    return examine_server(config.store.url, SystemClock())
