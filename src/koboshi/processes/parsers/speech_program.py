"""What is said in a recording: the recording on standard input; on standard output JSON with `text`
and its `duration` in seconds.

A program of its own, started for one recording by `locked.py`, with a model in a folder of this
machine: nothing is fetched. It imports nothing of koboshi.
"""

import io
import json
import os
import sys

NICENESS = 10
SECONDS_MAX = 3 * 3_600
WORDS_MAX = 40_000
NEEDED = ("model.bin", "config.json", "tokenizer.json")


def main() -> None:
    options = json.loads(sys.argv[1])
    folder, language = str(options["folder"]), str(options.get("language") or "") or None
    missing = [name for name in NEEDED if not os.path.isfile(os.path.join(folder, name))]
    if missing:
        sys.exit(f"there is no model of faster-whisper in voice.folder: {missing[0]} is missing")
    source = sys.stdin.buffer.read()
    os.nice(NICENESS)  # the gateway comes first
    os.environ["HF_HUB_OFFLINE"] = "1"
    from faster_whisper import WhisperModel

    model = WhisperModel(folder, device="cpu", compute_type="int8", local_files_only=True)
    pieces, about = model.transcribe(
        io.BytesIO(source), language=language, vad_filter=bool(options.get("skips_silence", True))
    )
    if about.duration > SECONDS_MAX:
        sys.exit("it is longer than three hours")
    text = ""
    for piece in pieces:
        text += piece.text
        if len(text) > WORDS_MAX:
            break
    said = {"text": text.strip()[:WORDS_MAX], "duration": float(about.duration)}
    sys.stdout.write(json.dumps(said))


if __name__ == "__main__":
    main()
