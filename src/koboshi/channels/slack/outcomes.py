"""What the answers of the Web API mean. Pure."""

from koboshi.channels.slack.types import SlackReply
from koboshi.domain.outbox import Later, Refused, SendOutcome, Sent, Unsure

RATE_LIMITED = "ratelimited"
UNKNOWN_OUTCOME = frozenset({"internal_error", "fatal_error", "request_timeout"})
"""The platform says itself that it may have done a part of what it was asked to."""
NOT_LET_IN = frozenset(
    "not_authed invalid_auth account_inactive token_revoked token_expired no_permission"
    " org_login_required ekm_access_denied not_allowed_token_type".split()
)
"""The token is wrong or was taken back."""
NOT_NOW = frozenset("service_unavailable team_added_to_org accesslimited".split())
BAD_BLOCKS = frozenset("invalid_blocks invalid_blocks_format msg_blocks_too_long".split())


def outcome_of(reply: SlackReply, wait_ms: int) -> SendOutcome:
    """What became of a message that was sent. Whatever is not taken was certainly not sent."""
    if reply.ok:
        if reply.ts:
            return Sent(platform_id=reply.ts)
        return Unsure(reason="the platform took it and did not say as what")
    return refusal_of(reply, wait_ms)


def refusal_of(reply: SlackReply, wait_ms: int) -> Later | Refused:
    """Why a call was not carried out, and whether it may be later."""
    if reply.error == RATE_LIMITED:
        return Later(wait_ms=max(wait_ms, 1), reason="the platform asks for quiet")
    if reply.error in NOT_LET_IN:
        return Later(wait_ms=0, reason=f"the token is refused: {reply.error}")
    if reply.error == "missing_scope":
        return Later(wait_ms=0, reason=f"the app lacks the scope {reply.needed or '?'}")
    if reply.error in NOT_NOW:
        return Later(wait_ms=0, reason=reply.error)
    return Refused(reason=_words_for(reply.error))


def complains_of_blocks(reply: SlackReply) -> bool:
    """Whether it was the formatting that was not taken."""
    return not reply.ok and reply.error in BAD_BLOCKS


_WORDS = {
    "not_in_channel": "the app is not in this channel; invite it",
    "channel_not_found": "there is no such conversation, or the app may not see it",
    "is_archived": "the channel is archived",
}


def _words_for(error: str) -> str:
    return _WORDS.get(error, error or "the platform refused it without a reason")
