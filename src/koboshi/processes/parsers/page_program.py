"""The text of a web page: HTML on standard input, JSON with `title` and `text` on standard output.

A program of its own, started for one page by `locked.py`. It imports nothing of koboshi.
"""

import json
import sys

TREE_DEPTH_MAX = 20_000


def main() -> None:
    options = json.loads(sys.argv[1])
    source = sys.stdin.buffer.read()
    sys.setrecursionlimit(TREE_DEPTH_MAX)
    from trafilatura import bare_extraction
    from trafilatura.utils import load_html

    tree = load_html(source)
    found = tree is not None and bare_extraction(
        tree, url=options.get("url"), with_metadata=True, include_links=True, include_tables=True
    )
    said = {"title": "", "text": ""}
    if found:
        named = found if isinstance(found, dict) else found.as_dict()
        said = {key: str(named.get(key) or "") for key in said}
    if tree is not None and not said["text"]:
        # Nothing reads like an article: a menu or a form, say. All words are better than none.
        said["text"] = "\n".join(line for line in map(str.strip, tree.itertext()) if line)
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    main()
