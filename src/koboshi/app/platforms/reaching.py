"""What the examinations of platforms share: is a server there, and what time does it tell?"""

from datetime import datetime
from email.utils import parsedate_to_datetime

from koboshi.app.platforms.platform import PlatformFinding
from koboshi.domain.durations import duration
from koboshi.ports.clock import Clock

PROBE_SECONDS = 15.0
AHEAD_S_MAX = 60


async def clock_ahead_s(base: str, clock: Clock) -> float | None:
    """How far our clock is ahead of a server's; None if it does not tell the time."""
    _, _, date = await reached(base)
    return None if date is None else clock.now_ms() / 1000 - date.timestamp()


def judged_clock(ahead_s: float | None) -> PlatformFinding:
    """Our clock beside the platform's."""
    if ahead_s is None:
        return PlatformFinding(severity="note", words="the platform does not say what time it is")
    words = f"our clock is {duration(int(abs(ahead_s) * 1000))} "
    words += "ahead of the platform's" if ahead_s > 0 else "behind the platform's"
    if abs(ahead_s) <= AHEAD_S_MAX:
        return PlatformFinding(severity="ok", words=words)
    remedy = "set the clock, and let it be kept: timedatectl set-ntp true"
    return PlatformFinding(severity="warning", words=words, remedy=remedy)


async def reached(url: str) -> tuple[int | None, str, datetime | None]:
    """How an address answers a call without credentials, or why it does not, and its time."""
    import httpx2

    try:
        async with httpx2.AsyncClient(timeout=PROBE_SECONDS, follow_redirects=False) as http:
            answer = await http.post(url, content=b"{}")
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        return None, type(error).__name__, None
    try:
        date = parsedate_to_datetime(answer.headers.get("Date", ""))
    except ValueError:
        return answer.status_code, "", None
    return answer.status_code, "", date if date.tzinfo else None
