"""A view as rules of Landlock. Pure.

Landlock can only grant. So a hidden place inside a granted one cannot be hidden: `conflict` says
so, and the boundary does not hold for such a view.
"""

from koboshi.boundary.view import Access, View, is_below
from koboshi.runner import landlock

RIGHTS = {
    Access.READ: landlock.READING,
    Access.WRITE: landlock.ALL,
    Access.DEVICE: landlock.READING | landlock.WRITE_FILE,
}


def grants(view: View) -> tuple[tuple[str, int], ...]:
    """What stays possible, as (path, rights)."""
    return tuple(
        (place.outside, RIGHTS[place.access])
        for place in view.places
        if place.access is not Access.HIDDEN
    )


def conflict(view: View) -> str:
    """Why Landlock cannot hold for the view; empty if it can."""
    if view.has_sockets and not view.has_network:
        return "without network Landlock leaves no sockets either, and some are named in `sockets`"
    granted = [place.outside for place in view.places if place.access is not Access.HIDDEN]
    for place in view.places:
        if place.access is not Access.HIDDEN:
            continue
        around = next((each for each in granted if is_below(place.outside, each)), None)
        if around is not None:
            return (
                f"{place.outside} lies in {around}, and Landlock cannot hide a part of what it "
                "shows; move one of them"
            )
    return ""
