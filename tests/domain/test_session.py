"""What a cut does to a session."""

import pytest

from koboshi.domain.ids import ChannelName, Generation, Seq, SessionId
from koboshi.domain.route import Route
from koboshi.domain.session import CutKind, Session, Settings, cut_of

SESSION = Session(
    session_id=SessionId(1),
    route=Route(channel=ChannelName("web"), chat="1"),
    generation=Generation(4),
    context_from=Seq(0),
)


@pytest.mark.parametrize("kind", CutKind)
def test_every_cut_begins_the_next_generation(kind: CutKind) -> None:
    """S86: generations grow by one and never repeat."""
    assert cut_of(SESSION, kind).generation == Generation(5)


@pytest.mark.parametrize("kind", CutKind)
def test_a_cut_says_what_kind_it_is(kind: CutKind) -> None:
    assert cut_of(SESSION, kind).kind is kind


@pytest.mark.parametrize(
    "kind, forgets", [(CutKind.STOP, False), (CutKind.STOP_ALL, False), (CutKind.NEW, True)]
)
def test_only_new_begins_without_the_old_transcript(kind: CutKind, forgets: bool) -> None:
    """S84: /stop keeps the conversation."""
    assert cut_of(SESSION, kind).forgets_transcript == forgets


@pytest.mark.parametrize(
    "kind, ends", [(CutKind.STOP, False), (CutKind.STOP_ALL, True), (CutKind.NEW, False)]
)
def test_only_stop_all_ends_background_processes(kind: CutKind, ends: bool) -> None:
    """S85."""
    assert cut_of(SESSION, kind).ends_background == ends


def test_a_session_has_no_settings_of_its_own_until_a_person_sets_them() -> None:
    assert SESSION.settings == Settings(busy=None, policy=None)
