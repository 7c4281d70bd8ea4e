"""What to run, as the gateway wrote it. Imports nearly nothing: it is part of the runner."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from koboshi.runner import tree
else:
    tree = __import__("tree")


class Spec:
    def __init__(self, content: bytes) -> None:
        settings, _, environment = content.partition(b"\0\0")
        said = tree.entries(settings)
        self.shell = said[b"shell"]
        self.command = said[b"command"]
        self.workdir = said[b"workdir"]
        self.timeout = float(said[b"timeout"])
        self.grace = float(said[b"grace"])
        self.takes_input = said[b"takes_input"] == b"1"
        self.head_max = int(said[b"head_max"])
        self.tail_max = int(said[b"tail_max"])
        # Of an agent: how much of its output may wait to be read. 0: it is an ordinary command.
        self.unread_max = int(said.get(b"unread_max", b"0"))
        self.marker = said[b"marker"]
        self.environment = tree.entries(environment) | {tree.MARKER: self.marker}
        self.is_confined = said[b"boundary"] != b"none"
        self.has_network = said[b"network"] == b"1"
        self.memory_max = int(said[b"memory_max"])
        self.processes_max = int(said[b"processes_max"])
        self.launcher = numbered(said, b"launcher")
        self.groups = numbered(said, b"group")
        self.grants = [split_grant(each) for each in numbered(said, b"grant")]


def numbered(said: dict[bytes, bytes], name: bytes) -> list[bytes]:
    """The values of `name.0`, `name.1` and so on."""
    found: list[bytes] = []
    while (value := said.get(b"%s.%d" % (name, len(found)))) is not None:
        found.append(value)
    return found


def split_grant(entry: bytes) -> tuple[bytes, int]:
    """Path and rights of `rights path`."""
    rights, _, path = entry.partition(b" ")
    return path, int(rights)
