# SPDX-License-Identifier: Apache-2.0
"""Streaming wake-word models from the field remember as TFLM does, frame after frame, and start anew when reset."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

import arenite
from arenite.host_model import HostModel
from arenite.tflite_graph import parse_graph
from arenite_converters.flatbuffer import pack
from support.tflm import TflmModel

FRAMES, AFTER_RESET = 1000, 100
MODELS = ("alexa", "hey_jarvis", "hey_mycroft", "okay_nabu")


def model_file(name: str) -> Path:
    found = find_spec("pymicro_wakeword")
    if found is None or found.origin is None:
        pytest.skip("the package pymicro-wakeword is not installed")
    return Path(found.origin).parent / "models" / f"{name}.tflite"


def with_logit(content: bytes) -> bytes:
    """The same model with the input of its LOGISTIC as a second output: a probability is 0 most of the time."""
    graph = parse_graph(content)
    logit = next(op.inputs[0] for op in graph.operators if op.kind == "LOGISTIC")
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(bytearray(content), 0))
    model.subgraphs[0].outputs = [*model.subgraphs[0].outputs, logit]
    return pack(model)


def features(count: int, shape: tuple[int, ...]) -> list[np.ndarray]:
    """What a microphone's spectrogram is like: slow loudness, bands that hang together, sometimes silence."""
    chance = np.random.default_rng(7)
    loudness = np.cumsum(chance.normal(0, 12, count)) % 220 - 110
    bands = np.cumsum(chance.normal(0, 3, (count, *shape)), axis=0) + chance.normal(0, 12, (count, *shape))
    frames = loudness.reshape(-1, *(1,) * len(shape)) + bands
    frames[chance.random(count) < 0.05] = -128
    return list(np.clip(np.rint(frames), -128, 127).astype(np.int8))


@pytest.mark.reference
@pytest.mark.parametrize("name", MODELS)
def test_a_thousand_frames_are_those_of_tflm(name: str, tmp_path: Path) -> None:
    content = with_logit(model_file(name).read_bytes())
    (tmp_path / "model.tflite").write_bytes(content)
    graph = parse_graph(content)
    frames = features(FRAMES, graph.tensors[graph.inputs[0]].shape)
    oracle = TflmModel(content)
    wanted = [oracle.run([frame], 2) for frame in frames]
    assert len({int(logit[0, 0]) for _, logit in wanted}) > 20, "the frames do not tell one answer from another"

    arenite.bundle(tmp_path / "model.tflite", "host", tmp_path / "bundle", vectors=0)
    model = HostModel(arenite.build(tmp_path / "bundle").elf)
    for number, (frame, want) in enumerate(zip(frames, wanted, strict=True)):
        found = model.run([frame])
        assert [a.tobytes() for a in found] == [a.tobytes() for a in want], f"frame {number}"
    model.reset()
    for number, (frame, want) in enumerate(zip(frames[:AFTER_RESET], wanted, strict=False)):
        found = model.run([frame])
        assert [a.tobytes() for a in found] == [a.tobytes() for a in want], f"frame {number} after the reset"
