"""Hits of public search engines: words on standard input, JSON with `results` on standard output.

A program of its own, with the network and without files, started by `locked.py`. It imports nothing
of koboshi.
"""

import json
import sys

SECONDS_MAX = 15


def main() -> None:
    count = int(json.loads(sys.argv[1])["count"])
    query = sys.stdin.buffer.read().decode("utf-8", "replace")
    from ddgs import DDGS
    from ddgs.exceptions import DDGSException

    try:
        rows = DDGS(timeout=SECONDS_MAX).text(query, max_results=count)
    except DDGSException as error:
        if "no results" not in str(error).lower():
            sys.exit(str(error)[:200])
        rows = []
    results = [
        {"title": row.get("title"), "url": row.get("href"), "content": row.get("body")}
        for row in rows
    ]
    sys.stdout.write(json.dumps({"results": results}))


if __name__ == "__main__":
    main()
