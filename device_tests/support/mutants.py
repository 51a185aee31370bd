# SPDX-License-Identifier: Apache-2.0
"""Faults put into a bundle's generated C, as a bad flash, a wrong tool or an edit by hand would."""

from __future__ import annotations

import re
import struct
from pathlib import Path

from arenite.tflite_graph import parse_graph
from arenite_codegen.tables import packed_steps

__all__ = ["flip_weight_byte", "swap_steps", "take_constants", "unpacked_steps", "with_scale_of_channel"]


def flip_weight_byte(bundle: Path, layer: int, byte: int = 0) -> None:
    """Inverts the bits of one weight of a layer."""
    _change_word(bundle, _word(bundle, layer, "weights") + byte // 4, 0xFF << byte % 4 * 8)


def with_scale_of_channel(model: bytes, operator: int, channel: int, factor: float) -> bytes:
    """A model whose multiplier of one channel of a convolution is another; all else is the same."""
    graph = parse_graph(model)
    content = bytearray(model)
    for index in graph.operators[operator].inputs[1:3]:
        quantisation = graph.tensors[index].quantisation
        assert quantisation is not None
        old = struct.pack("<f", quantisation.scales[channel])
        assert content.count(old) == 1
        at = content.index(old)
        content[at : at + 4] = struct.pack("<f", quantisation.scales[channel] * factor)
    return bytes(content)


def take_constants(bundle: Path, other: Path) -> None:
    """Gives a bundle the generated C of another one of the same network, under its own digest."""
    own, foreign = ((folder / "model" / "model.c").read_text() for folder in (bundle, other))
    digest = re.compile(r"sha256\[32\] = \{.*?\};", re.DOTALL)
    kept = digest.search(own)
    assert kept is not None
    (bundle / "model" / "model.c").write_text(digest.sub(kept[0], foreign))
    (bundle / "model" / "weights.c").write_text((other / "model" / "weights.c").read_text())


def swap_steps(bundle: Path, producer: int, consumer: int) -> None:
    """Lets a row be read before it is made: swaps two neighbours in the row schedule, in the middle of it."""
    path = bundle / "model" / "model.c"
    text = path.read_text()
    found = re.search(r"steps\[\] = \{(.*?)\};", text, re.DOTALL)
    assert found is not None
    entries = unpacked_steps(bytes(int(byte, 0) for byte in re.findall(r"\w+", found[1])))
    wanted = (producer, consumer)
    pairs = [i for i in range(len(entries) - 1) if (entries[i][0], entries[i + 1][0]) == wanted and entries[i][1] == 1]
    at = pairs[len(pairs) // 2]
    entries[at], entries[at + 1] = entries[at + 1], entries[at]
    packed = packed_steps(entries)
    text = text.replace(found[1], ", ".join(map(str, packed)))
    path.write_text(re.sub(r"\.step_bytes = \d+u", f".step_bytes = {len(packed)}u", text))


def unpacked_steps(packed: bytes) -> list[tuple[int, int]]:
    """The entries of a row schedule, as arenite.h describes them."""
    plain, at = bytearray(), 0
    while at < len(packed):
        if packed[at] == 0x10:
            bytes_before, times = packed[at + 1], packed[at + 2]
            plain += plain[len(plain) - bytes_before :] * times
            at += 3
        else:
            size = 1 if packed[at] & 15 else 5
            plain += packed[at : at + size]
            at += size
    return _entries(bytes(plain))


def _entries(packed: bytes) -> list[tuple[int, int]]:
    found, layer, at = [], 0, 0
    while at < len(packed):
        count = packed[at] & 15
        if count:
            layer, at = layer + (packed[at] >> 4) - 8, at + 1
        else:
            layer = int.from_bytes(packed[at + 1 : at + 3], "little")
            count = int.from_bytes(packed[at + 3 : at + 5], "little")
            at += 5
        found.append((layer, count))
    return found


def _word(bundle: Path, layer: int, parameter: str) -> int:
    """Where a layer's array starts, in words of the weights."""
    text = (bundle / "model" / "model.c").read_text()
    body = text[text.index(f" params_{layer} = ") :]
    found = re.search(rf"\.{parameter} = [^\n]*_data\[(\d+)\]", body[: body.index("};")])
    assert found is not None, f"layer {layer} has no array {parameter}"
    return int(found[1])


def _change_word(bundle: Path, word: int, mask: int) -> None:
    path = bundle / "model" / "weights.c"
    text = path.read_text()
    start = text.rindex("= {")
    words = list(re.finditer(r"0x[0-9a-fA-F]+", text[start:]))
    found = words[word]
    value = f"0x{int(found[0], 16) ^ mask:08x}"
    path.write_text(text[: start + found.start()] + value + text[start + found.end() :])
