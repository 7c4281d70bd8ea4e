"""How a gateway proves that it is the one with the token, before it is sent anything."""

import hmac
from base64 import urlsafe_b64encode

import msgspec

IDENTITY_PATH = "/api/v1/identity"


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Made of the challenge and the Host header with the token."""

    identity: str


def identity_of(token: str, host: str, challenge: str) -> str:
    """What only a gateway with the token can say to the challenge, at the address by which it was
    called: a program that passes the challenge on to the gateway is called by another one."""
    return mac_of(token, f"identity.{host.lower()}.{challenge}")


def page_key_of(token: str, browser: str) -> str:
    """What the gateway and the page of a browser share, so that the page can check the gateway. It
    opens nothing."""
    return mac_of(token, f"page.{browser}")


def page_identity_of(token: str, browser: str, host: str, challenge: str) -> str:
    """The same for a page, which does not have the token."""
    said = f"{host.lower()}.{challenge}".encode("utf-8", "replace")
    return hmac.digest(page_key_of(token, browser).encode(), said, "sha256").hex()


def mac_of(token: str, text: str) -> str:
    """What is made of a text with the token; the text says what it is for."""
    mac = hmac.digest(token.encode(), f"koboshi.{text}".encode("utf-8", "replace"), "sha256")
    return urlsafe_b64encode(mac).decode().rstrip("=").replace("-", "x").replace("_", "y")
