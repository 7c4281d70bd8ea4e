"""Replies of model providers, byte by byte."""

from pathlib import Path

FOLDER = Path(__file__).parent.parent / "fakes" / "model_servers" / "streams"
STREAMS = sorted(path.name for path in FOLDER.glob("*.sse"))


def stream_in(name: str) -> bytes:
    return (FOLDER / name).read_bytes()
