"""Speech that is written down on this machine: the real program, with a stub of its library; and in
the campaign the real library, with a tiny model, inside the locked boundary."""

import io
import json
import math
import struct
import subprocess
import sys
import wave
from pathlib import Path

import msgspec
import pytest

from koboshi.app.builders.parsers import parsers_of
from koboshi.config import Config
from koboshi.models.transcription import LocalTranscriber
from koboshi.ports.parsers import NotParsed, ParserKind
from koboshi.ports.transcriber import NotTranscribed, Transcript
from koboshi.processes.parsers.locked import program_of
from tests.harness.tally import WANTS_ALL

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {"PATH": "/usr/bin:/bin"}
NEEDED = ("model.bin", "config.json", "tokenizer.json")
STUB = """
from types import SimpleNamespace

class WhisperModel:
    def __init__(self, folder, *, device, compute_type, local_files_only):
        assert local_files_only, "nothing may be fetched"
        self.folder = folder

    def transcribe(self, file, *, language, vad_filter):
        content = file.read()
        times = 1_000_000 if content.startswith(b"\\0") else 1
        words = (f" {len(content)} bytes,", f" in {language},", *[" heard"] * times)
        return (SimpleNamespace(text=each) for each in words), SimpleNamespace(duration=2.5)
"""
STARTS = """
import runpy, sys
sys.path.insert(0, sys.argv.pop(1))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def recording(seconds: float = 1.0) -> bytes:
    made = io.BytesIO()
    with wave.open(made, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        tones = (round(8_000 * math.sin(at / 20)) for at in range(round(16_000 * seconds)))
        file.writeframes(b"".join(struct.pack("<h", each) for each in tones))
    return made.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Looks like a model."""
    made = tmp_path / "model"
    made.mkdir()
    for name in NEEDED:
        (made / name).write_bytes(b"{}")
    return made


def written_down(tmp_path: Path, source: bytes, **options: str) -> subprocess.CompletedProcess:
    stub = tmp_path / "stub"
    stub.mkdir(exist_ok=True)
    (stub / "faster_whisper.py").write_text(STUB)
    command = (sys.executable, "-I", "-B", "-c", STARTS, str(stub))
    return subprocess.run(
        [*command, program_of(ParserKind.SPEECH), json.dumps(options)],
        input=source,
        capture_output=True,
        check=False,
    )


def test_the_program_says_what_its_library_hears(tmp_path: Path, folder: Path) -> None:
    ended = written_down(tmp_path, b"1234", folder=str(folder), language="de")

    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == {"text": "4 bytes, in de, heard", "duration": 2.5}


def test_endless_words_are_cut(tmp_path: Path, folder: Path) -> None:
    """Models repeat themselves now and then."""
    ended = written_down(tmp_path, b"\0" + bytes(9), folder=str(folder))

    assert len(json.loads(ended.stdout)["text"]) == 40_000


@pytest.mark.parametrize("missing", NEEDED)
def test_a_folder_without_a_model_is_named(tmp_path: Path, folder: Path, missing: str) -> None:
    (folder / missing).unlink()
    ended = written_down(tmp_path, b"1", folder=str(folder))

    assert ended.returncode == 1
    assert f"{missing} is missing" in ended.stderr.decode()


async def test_without_the_library_the_remedy_is_told(tmp_path: Path) -> None:
    parsers = parsers_of(Config(home=tmp_path / "home"), ENVIRONMENT)
    if parsers.is_installed(ParserKind.SPEECH):
        pytest.skip("the library is here")
    speaker = LocalTranscriber(parsers=parsers, folder=str(tmp_path))

    with pytest.raises(NotTranscribed, match=r"koboshi\[whisper\]") as told:
        await speaker.transcribe("a.ogg", b"OggS")
    assert (told.value.is_free, told.value.may_work_later) == (True, False)


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.skipif(not WANTS_ALL, reason="installs 400 MB; KOBOSHI_TESTS=all")
async def test_the_real_library_writes_down_inside_the_locked_boundary(tmp_path: Path) -> None:
    """The weights are by chance, so the words are nonsense; all code on the way is the real one."""
    subprocess.run([ROOT / "scripts" / "side_environment.sh", "whisper"], check=True)
    python, model = ROOT / ".venv-whisper" / "bin" / "python", tmp_path / "tiny"
    subprocess.run([python, ROOT / "tests" / "fakes" / "tiny_whisper.py", model], check=True)
    config = Config(home=tmp_path / "home")
    voice = msgspec.structs.replace(config.voice, folder=model)
    config = msgspec.structs.replace(config, voice=voice)
    made = parsers_of(config, ENVIRONMENT, str(python))
    parsers = type(made)(prepare=made.prepare, python=made.python, has_library=lambda _: True)
    speaker = LocalTranscriber(parsers=parsers, folder=str(model))

    options = {"folder": str(model), "skips_silence": False}
    heard = json.loads(await parsers.parse(ParserKind.SPEECH, recording(2), options))
    assert heard["duration"] == 2
    assert isinstance(heard["text"], str)  # by chance there is none
    # A tone is no speech: the library's own filter leaves nothing of it.
    assert await speaker.transcribe("a", recording(2)) == Transcript(words="", seconds=2)
    with pytest.raises(NotTranscribed, match="its parser failed"):
        await speaker.transcribe("a.ogg", b"OggS" + bytes(500))
    with pytest.raises(NotParsed, match="is missing"):
        await parsers.parse(ParserKind.SPEECH, b"", {"folder": str(tmp_path / "other")})
