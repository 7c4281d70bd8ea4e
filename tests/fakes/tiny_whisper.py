"""Makes a model of faster-whisper with one layer and weights by chance, in a named folder.

Run by the interpreter that has the library. What the model hears is nonsense, by the real code.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from ctranslate2.specs import WhisperSpec
from faster_whisper.tokenizer import _LANGUAGE_CODES
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

WIDTH, MELS, POSITIONS, WORDS_MAX = 64, 80, 1_500, 448
CHANCE = np.random.default_rng(1)


def main(folder: Path) -> None:
    words = tokenizer()
    known = words.get_vocab()
    spec = WhisperSpec(
        num_encoder_layers=1, num_encoder_heads=1, num_decoder_layers=1, num_decoder_heads=1
    )
    fill_encoder(spec.encoder)
    fill_decoder(spec.decoder, len(known))
    spec.register_vocabulary(sorted(known, key=lambda word: known[word]))
    spec.config.suppress_ids, spec.config.suppress_ids_begin = [], []
    spec.config.alignment_heads = [(0, 0)]
    spec.config.lang_ids = [known[f"<|{code}|>"] for code in _LANGUAGE_CODES]
    spec.validate()
    spec.optimize()
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))
    words.save(str(folder / "tokenizer.json"))


def tokenizer() -> Tokenizer:
    """Every byte is a word, and all marks of Whisper are there."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE(vocab={each: at for at, each in enumerate(letters)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    tasks = ("translate", "transcribe", "startoflm", "startofprev", "nospeech", "notimestamps")
    times = (f"{place * 0.02:.2f}" for place in range(POSITIONS + 1))
    marks = ("endoftext", "startoftranscript", *_LANGUAGE_CODES, *tasks, *times)
    made.add_special_tokens([AddedToken(f"<|{mark}|>", special=True) for mark in marks])
    return made


def fill_encoder(encoder: Any) -> None:
    weigh(encoder.conv1, WIDTH, MELS, 3)
    weigh(encoder.conv2, WIDTH, WIDTH, 3)
    encoder.position_encodings.encodings = by_chance(POSITIONS, WIDTH)
    even_out(encoder.layer_norm)
    (layer,) = encoder.layer
    attend(layer.self_attention, 3 * WIDTH, WIDTH)
    think(layer.ffn)


def fill_decoder(decoder: Any, words: int) -> None:
    decoder.embeddings.weight = decoder.projection.weight = by_chance(words, WIDTH)
    decoder.position_encodings.encodings = by_chance(WORDS_MAX, WIDTH)
    decoder.scale_embeddings = False
    even_out(decoder.layer_norm)
    (layer,) = decoder.layer
    attend(layer.self_attention, 3 * WIDTH, WIDTH)
    attend(layer.attention, WIDTH, 2 * WIDTH, WIDTH)
    think(layer.ffn)


def attend(attention: Any, *sizes: int) -> None:
    even_out(attention.layer_norm)
    for part, size in zip(attention.linear, sizes, strict=True):
        weigh(part, size, WIDTH)


def think(network: Any) -> None:
    even_out(network.layer_norm)
    weigh(network.linear_0, 4 * WIDTH, WIDTH)
    weigh(network.linear_1, WIDTH, 4 * WIDTH)


def weigh(part: Any, *shape: int) -> None:
    part.weight, part.bias = by_chance(*shape), np.zeros(shape[0], np.float32)


def even_out(norm: Any) -> None:
    norm.gamma, norm.beta = np.ones(WIDTH, np.float32), np.zeros(WIDTH, np.float32)


def by_chance(*shape: int) -> Any:
    return (CHANCE.standard_normal(shape) * 0.05).astype(np.float32)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
