"""One kind of connection for all of the harness."""

import httpx2

from tests.harness.polling import WITHIN_S


def connection(address: str, token: str = "") -> httpx2.AsyncClient:
    """A connection to a gateway. It is quick to make: nothing is loaded that only TLS needs."""
    return httpx2.AsyncClient(
        base_url=address,
        headers={"Authorization": f"Bearer {token}"} if token else {},
        trust_env=False,
        verify=False,
        timeout=httpx2.Timeout(WITHIN_S),
    )
