"""Patterns for names, as in a shell: `*`, `?`, `[a-z]`, and `**` for any number of folders."""

from fnmatch import fnmatchcase


def fits(pattern: str, path: str) -> bool:
    """Whether a relative path fits. A pattern without a slash is compared with the name alone."""
    names = path.rstrip("/").split("/")
    if "/" not in pattern:
        return fnmatchcase(names[-1], pattern)
    # For each part of the pattern: up to which names the parts so far can reach.
    reached = {0}
    for part in pattern.strip("/").split("/"):
        if part == "**":
            reached = set(range(min(reached), len(names) + 1)) if reached else reached
        else:
            reached = {at + 1 for at in reached if at < len(names) and fnmatchcase(names[at], part)}
    return len(names) in reached
