"""The body of a request, read no further than it may be long, and no longer than it may take."""

from anyio import fail_after
from starlette.requests import ClientDisconnect, Request

from koboshi.channels.web.codec import Unacceptable, too_large

DIGITS_MAX = 18


async def read_body(request: Request, *, bytes_max: int, seconds: float) -> bytes:
    """The whole body. Raises Unacceptable."""
    announced = request.headers.get("content-length", "0")
    is_number = announced.isascii() and announced.isdigit()
    if is_number and (len(announced) > DIGITS_MAX or int(announced) > bytes_max):
        raise too_large(bytes_max)
    body = bytearray()
    try:
        with fail_after(seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > bytes_max:
                    raise too_large(bytes_max)
    except TimeoutError:
        message = f"the body did not arrive within {seconds:g} s"
        raise Unacceptable(408, "too-slow", message) from None
    except ClientDisconnect:
        # The client has gone and will not read this.
        raise Unacceptable(400, "gone", "the connection ended within the body") from None
    return bytes(body)
