"""What of a configuration must be the same on all gateways of one database."""

from koboshi.config.sections import Config
from koboshi.config.show import describe
from koboshi.domain.fingerprint import fingerprint_of

_OWN = frozenset({"home", "config", "gateway.node", "gateway.workdir", "store.url"})
_OWN_NAMES = frozenset({"host", "port", "public_url", "webhook_host", "webhook_port"})
"""Keys of any section that say where a node is reached."""
_PLACES = ("_env", "_file")
_SECRETS = frozenset({"api_key", "token", "app_token", "signing_secret"})
"""A secret, and where a node finds it, is its own matter: nothing can be tried on a mark, and a
command that has no secrets makes the same."""


def config_fingerprint(config: Config) -> str:
    """A mark for each section."""
    kept = []
    for path, value, _source in describe(config):
        section, _, key = path.rpartition(".")
        if path not in _OWN and key not in _OWN_NAMES | _SECRETS and not key.endswith(_PLACES):
            kept.append((section, key, value))
    return fingerprint_of(kept)
