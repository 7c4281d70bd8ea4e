"""Issue 15, roles: the least role, who decides about an approval, and whose folder it is."""

import pytest

from koboshi.domain.ids import SessionId
from koboshi.domain.role import NoRuling, Role, least_role, why_no_ruling, work_folder

OWNER, MEMBER = Role.OWNER, Role.MEMBER


@pytest.mark.parametrize(
    "roles, least",
    [
        ([OWNER], OWNER),
        ([OWNER, OWNER], OWNER),
        ([OWNER, MEMBER], MEMBER),
        ([MEMBER, OWNER], MEMBER),
        ([OWNER, None], MEMBER),
        ([], MEMBER),
    ],
)
def test_a_turn_has_the_least_role_of_all_in_it(roles: list[Role | None], least: Role) -> None:
    assert least_role(roles) is least


@pytest.mark.parametrize("person", [MEMBER, None])
@pytest.mark.parametrize("turn", Role)
@pytest.mark.parametrize("is_shown_here", [True, False])
def test_only_an_owner_decides(person: Role | None, turn: Role, is_shown_here: bool) -> None:
    why = why_no_ruling(person, turn, is_shown_here=is_shown_here)

    assert why is NoRuling.NOT_OWNER


def test_an_owner_decides_where_it_was_shown() -> None:
    assert why_no_ruling(OWNER, OWNER, is_shown_here=True) is None
    assert why_no_ruling(OWNER, MEMBER, is_shown_here=True) is None
    assert why_no_ruling(OWNER, MEMBER, is_shown_here=False) is NoRuling.ELSEWHERE


def test_owners_share_the_folder_and_others_have_one_named_by_their_chat() -> None:
    assert work_folder(SessionId(3), OWNER) == ""
    assert work_folder(SessionId(3), MEMBER) == "people/s3"
    assert work_folder(SessionId(4), None) == "people/s4"
