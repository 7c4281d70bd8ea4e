"""A picture made small enough for a model: the picture on standard input; on standard output a
line of JSON with its media type and size, and then the picture.

A program of its own, started for one picture by `locked.py`. It imports nothing of koboshi.
"""

import io
import json
import sys

PIXELS_MAX = 60_000_000
QUALITY = 85


def main() -> None:
    side_max = int(json.loads(sys.argv[1])["side_max"])
    source = sys.stdin.buffer.read()
    from PIL import Image, ImageOps

    Image.MAX_IMAGE_PIXELS = PIXELS_MAX // 2  # twice that is an error
    opened = Image.open(io.BytesIO(source), formats=("PNG", "JPEG", "GIF", "WEBP"))
    turned = ImageOps.exif_transpose(opened)
    turned.thumbnail((side_max, side_max))
    has_alpha = turned.mode in ("RGBA", "LA", "PA") or "transparency" in turned.info
    said = io.BytesIO()
    if has_alpha:
        turned.convert("RGBA").save(said, "PNG", optimize=True)
    else:
        turned.convert("RGB").save(said, "JPEG", quality=QUALITY)
    media_type = "image/png" if has_alpha else "image/jpeg"
    head = {"media_type": media_type, "width": turned.width, "height": turned.height}
    sys.stdout.buffer.write(json.dumps(head).encode() + b"\n" + said.getvalue())


if __name__ == "__main__":
    main()
