"""Pictures that a browser may show, known by how they begin. Their names prove nothing."""

HEAD_BYTES = 16

_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def picture_type(head: bytes) -> str | None:
    """The media type of the picture that begins so; None if it is none that is shown. SVG is a
    program as much as a picture, and is not."""
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for begin, kind in _BEGINNINGS if head.startswith(begin)), None)
