"""Which commands a person is asked about first (`approval = "dangerous"`).

A convenience against accidents, not a boundary: a command can always be written so that no list
recognises it. The boundary is the user that the gateway runs as. `docs/approvals.md` has the list.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Danger:
    label: str
    pattern: re.Pattern[str]
    example: str


def _danger(label: str, pattern: str, example: str) -> Danger:
    return Danger(label=label, pattern=re.compile(pattern, re.IGNORECASE), example=example)


_WORD = r"(?:^|[;&|(`\s/'\"])"

DANGERS: tuple[Danger, ...] = (
    _danger("deletes a tree", _WORD + r"rm\s+(?:-\w+\s+)*-\w*[rf]", "rm -rf build"),
    _danger(
        "deletes what it finds", _WORD + r"find\b.*\s-(?:delete|exec\s+rm)\b", "find . -delete"
    ),
    _danger(
        "writes to a device",
        r"(?:\bof=|>\s*)/dev/(?!null\b|stdout\b|stderr\b|tty\b)",
        "dd of=/dev/sda",
    ),
    _danger(
        "makes a file system", _WORD + r"(?:mkfs\S*|fdisk|parted|wipefs)\b", "mkfs.ext4 /dev/sdb1"
    ),
    _danger("becomes another user", _WORD + r"(?:sudo|doas|su|pkexec)\b", "sudo apt-get update"),
    _danger(
        "changes rights of a tree",
        _WORD + r"ch(?:mod|own|grp)\s+(?:-\w+\s+)*-\w*R",
        "chmod -R 777 .",
    ),
    _danger(
        "stops the machine", _WORD + r"(?:shutdown|reboot|halt|poweroff|init\s+[06])\b", "reboot"
    ),
    _danger(
        "controls services",
        _WORD
        + r"(?:systemctl|service|launchctl|initctl)\s+(?:\S+\s+)*?"
        + r"(?:stop|restart|disable|mask|kill|unload|bootout)\b",
        "systemctl restart nginx",
    ),
    _danger(
        "controls containers",
        _WORD
        + r"(?:docker|podman|kubectl)\s+(?:\S+\s+)*?"
        + r"(?:rm|rmi|kill|stop|restart|prune|delete|drain)\b",
        "docker rm -f db",
    ),
    _danger("kills processes", _WORD + r"(?:kill|pkill|killall|skill)\b", "pkill -9 python"),
    _danger(
        "runs what it downloads",
        r"\b(?:curl|wget)\b[^|;&]*\|\s*(?:\w+\s+)*(?:ba|z|da|k)?sh\b",
        "curl x.sh | sh",
    ),
    _danger(
        "overwrites history",
        _WORD + r"git\s+(?:\S+\s+)*?(?:push\s+.*(?:-f\b|--force)|reset\s+--hard|clean\s+-\w*f)",
        "git push --force",
    ),
    _danger(
        "drops a database",
        r"\b(?:drop|truncate)\s+(?:table|database|schema)\b",
        "psql -c 'drop table users'",
    ),
    _danger("edits the timetable", _WORD + r"(?:crontab\s+(?!-l\b)\S|at\s+\S)", "crontab jobs.txt"),
    _danger(
        "reads keys", r"(?:\.ssh/|\.aws/|\.gnupg/|/etc/shadow|web-token)", "cat ~/.ssh/id_ed25519"
    ),
    _danger("is a fork bomb", r":\(\)\s*\{.*\|.*&\s*\}\s*;", ":(){ :|:& };:"),
)


def danger_in(command: str) -> str | None:
    """What is dangerous about a command, in words; None if nothing on the list is."""
    for danger in DANGERS:
        if danger.pattern.search(command):
            return danger.label
    return None
