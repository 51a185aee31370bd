# SPDX-License-Identifier: Apache-2.0
"""The engine `aot`: the firmware's bytes, its cache, two processes at once, and what it does without a compiler."""

from __future__ import annotations

import gc
import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import arenite
from arenite.compiled import cache_folder, read_compiled
from arenite.contract import CONTRACT_METADATA
from arenite.engines import Placement
from arenite.errors import (
    FallbackWarning,
    MissingToolError,
    ModelError,
    OutputError,
    UnsupportedOperatorError,
    UsageError,
)
from arenite.tflite_graph import parse_graph
from arenite_codegen import toolchain
from support import bad_models
from support.builder import ModelBuilder
from support.reference_models import REFERENCE_MODELS, random_inputs, sample_inputs
from support.tflm import TflmModel

Array = npt.NDArray[np.int8]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("ARENITE_CACHE", str(folder))
    return folder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.tflite"
    path.write_bytes(bad_models.good_model())
    return path


def picture(seed: int) -> Array:
    return np.random.default_rng(seed).integers(-128, 128, (1, 6, 6, 3)).astype(np.int8)


def libraries(cache: Path) -> list[Path]:
    return sorted(cache.rglob("libmodel.so"))


def test_its_bytes_are_the_references(model: Path, cache: Path) -> None:
    reference = TflmModel(model.read_bytes())
    session = arenite.open(model, engine="aot")
    for seed in range(10):
        session.input[...] = picture(seed)
        session.run()
        assert np.array_equal(session.output, reference.run([picture(seed)])[0])
    report = session.report
    assert (report.engine, report.rounding, report.keeps_inputs) == ("aot", "double", False)
    assert report.placements == (Placement("generated C", {"CONV_2D": 1, "SOFTMAX": 1}),)
    assert report.refusals == () and report.version.split()[-1][0].isdigit()
    assert len(libraries(cache)) == 1


@pytest.mark.reference
@pytest.mark.parametrize("name", [name for name in REFERENCE_MODELS if "1x3x224" not in name])
def test_trained_networks_give_the_references_bytes(shared_data: Path, name: str) -> None:
    path = shared_data / name
    graph = arenite.read_graph(path)
    tensor = graph.tensors[graph.inputs[0]]
    inputs = [*sample_inputs(shared_data, name, tensor), *random_inputs(tensor, 1, 3)]
    session, reference = arenite.open(path, engine="aot"), TflmModel(path.read_bytes())
    for values in inputs:
        session.input[...] = values
        session.run()
        assert np.array_equal(session.output, reference.run([values])[0])


def test_the_second_opening_compiles_nothing(model: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = arenite.open(model, engine="aot")
    stamp = libraries(cache)[0].stat().st_mtime_ns
    monkeypatch.setattr(subprocess, "run", _no_process)
    monkeypatch.setattr(subprocess, "Popen", _no_process)
    second = arenite.open(model, engine="aot")
    assert [libraries(cache)[0].stat().st_mtime_ns] == [stamp]
    notes = [step.note for session in (first, second) for step in session.cold_start.steps if step.name == "build"]
    assert notes == ["compiled", "from the cache"]


def _no_process(*_: object, **__: object) -> None:
    raise AssertionError("a process was started")


def test_two_sessions_have_two_arenas(model: Path) -> None:
    one, two = (arenite.open(model, engine="aot") for _ in range(2))
    one.input[...], two.input[...] = picture(1), picture(2)
    one.run()
    two.run()
    reference = TflmModel(model.read_bytes())
    assert np.array_equal(one.output, reference.run([picture(1)])[0])
    assert np.array_equal(two.output, reference.run([picture(2)])[0])


def test_an_output_stays_while_the_next_input_is_written(model: Path) -> None:
    """In the arena the two may share their bytes."""
    session = arenite.open(model, engine="aot")
    session.input[...] = picture(1)
    session.run()
    output = session.output
    expected = output.copy()
    for value in (-128, 127):
        session.input.fill(value)
        assert np.array_equal(output, expected)


def test_views_keep_the_arena_alive(model: Path) -> None:
    session = arenite.open(model, engine="aot")
    session.input[...] = picture(1)
    row = session.input[0, 5]
    session.run()
    output, expected = session.output, session.output.copy()
    kept = row.copy()
    del session
    gc.collect()
    blocks = [np.full(1 << 16, 0x55, np.uint8) for _ in range(50)]
    assert np.array_equal(output, expected) and np.array_equal(row, kept) and blocks


def test_processes_that_build_at_once_agree(model: Path, cache: Path) -> None:
    program = (
        "import sys, numpy as np, arenite\n"
        "session = arenite.open(sys.argv[1], engine='aot')\n"
        "session.input[...] = 3\n"
        "session.run()\n"
        "print(session.output.tolist())\n"
    )
    command = [sys.executable, "-c", program, str(model)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    running = [subprocess.Popen(command, **pipes) for _ in range(3)]  # type: ignore[call-overload]
    said = [process.communicate(timeout=120) for process in running]
    expected = TflmModel(model.read_bytes()).run([np.full((1, 6, 6, 3), 3, np.int8)])[0]
    assert [out.strip() for out, _ in said] == [str(expected.tolist())] * 3, said
    assert len(libraries(cache)) == 1
    # The model's and that of the resize; nothing half done beside them.
    whole = {path.parent.name for path in (cache / "host").glob("*/lib*.so")}
    assert len(whole) == 2
    assert {path.name for path in (cache / "host").iterdir()} == whole


@pytest.mark.parametrize("damage", ["truncated", "missing", "about"])
def test_a_damaged_cache_is_mended(model: Path, cache: Path, damage: str) -> None:
    arenite.open(model, engine="aot")
    library = libraries(cache)[0]
    replaced = library.parent / "other"
    replaced.write_bytes({"truncated": library.read_bytes()[:100], "missing": b"", "about": b"{"}[damage])
    # Another file under the old name: the one that is mapped in this process must not change.
    replaced.replace(library.parent / "library.json" if damage == "about" else library)
    if damage == "missing":
        library.unlink()
    session = arenite.open(model, engine="aot")
    session.input[...] = picture(1)
    session.run()
    assert np.array_equal(session.output, TflmModel(model.read_bytes()).run([picture(1)])[0])


DAMAGES = [
    ('\\"inputs\\": 1', '\\"inputs\\": 0'),
    ('\\"dtype\\": \\"int8\\"', '\\"dtype\\": \\"int9\\"'),
    ("[1, 6, 6, 3]", "[1, 6, 6, 2]"),
    ('"known": "', '"known": 5, "other": "'),
    ('"compiler": {', '"compiler": 5, "other": {'),
]


def test_what_is_known_of_the_model_is_built_anew_when_damaged(model: Path, cache: Path) -> None:
    """However it is damaged the model is read instead; the next session mends it."""
    arenite.open(model, engine="aot")
    about = libraries(cache)[0].parent / "library.json"
    whole = about.read_text()
    tensors = len(arenite.read_graph(model).tensors)
    for old, new in DAMAGES:
        assert old in whole
        about.write_text(whole.replace(old, new))
        assert len(read_compiled(model).tensors) == tensors
    about.write_text(whole.replace('{"toolchain"', '{"other"'))
    session = arenite.open(model, engine="aot")
    assert about.read_text() == whole
    assert [step.note for step in session.cold_start.steps][-1] == "compiled"
    session.input[...] = picture(1)
    session.run()
    assert np.array_equal(session.output, TflmModel(model.read_bytes()).run([picture(1)])[0])
    assert len(read_compiled(model).tensors) == 2


def test_a_model_that_is_replaced_meanwhile_is_not_kept(
    model: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is compiled would stand under the digest of the file that was read before."""
    bundle, content = arenite.bundle, model.read_bytes()

    def replaced(*arguments: Any, **options: Any) -> Any:
        model.write_bytes(content + b"\0" * 16)
        return bundle(*arguments, **options)

    monkeypatch.setattr(arenite, "bundle", replaced)
    with pytest.raises(ModelError, match=r"model\.tflite: the file changed while it was opened"):
        arenite.open(model, engine="aot")
    assert libraries(cache) == []


def test_without_a_compiler(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compiled runs; what is not is refused with a cure; no engine is put in its place."""
    arenite.open(model, engine="aot")
    other = model.with_name("other.tflite")
    other.write_bytes(bad_models.good_model() + b"\0" * 16)
    monkeypatch.setattr(toolchain, "_command", lambda board, name: None)
    arenite.open(model, engine="aot").run()
    with pytest.raises(MissingToolError, match=r"no compiler for host.*pip install 'arenite\[firmware\]'"):
        arenite.open(other, engine="aot")


def test_a_changed_compiler_builds_anew(model: Path, cache: Path) -> None:
    arenite.open(model, engine="aot")
    about = libraries(cache)[0].parent / "library.json"
    for change, compiles in (({"bytes": 1}, True), ({"file": str(cache / "gone")}, False)):
        fields = json.loads(about.read_text())
        fields["compiler"].update(change)
        about.write_text(json.dumps(fields))
        notes = [step.note for step in arenite.open(model, engine="aot").cold_start.steps]
        assert notes[-1] == ("compiled" if compiles else "from the cache")


def test_the_cache_tells_what_the_file_would(tmp_path: Path) -> None:
    """Shapes, quantisation, operators and contract come from beside the library the second time."""
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 2, 2, 3), "int8", scales=[1 / 255], zero_points=[-128])
    y = builder.tensor("y", (1, 2, 2, 3), "int8", scales=[1 / 255], zero_points=[-128])
    builder.operator("RELU", [x], [y])
    path = tmp_path / "model.tflite"
    graph = parse_graph(builder.finish([x], [y]))
    contract = arenite.make_contract(graph, normalisation="unit", labels=[f"pixel {i}" for i in range(12)])
    builder.metadata(CONTRACT_METADATA, contract.to_json().encode())
    path.write_bytes(builder.finish([x], [y]))
    first, second = (arenite.open(path, engine="aot") for _ in range(2))
    assert second.contract == first.contract == contract
    assert second.report.placements == first.report.placements
    assert (second.input.shape, second.input.dtype) == (first.input.shape, first.input.dtype)
    grey = np.full((2, 2, 3), 9, np.uint8)
    assert second.classify(grey).labels == first.classify(grey).labels


def test_opening_again_imports_no_generator(model: Path) -> None:
    arenite.open(model, engine="aot")
    program = (
        "import sys, numpy, numpy.typing\n"
        "before = set(sys.modules)\n"
        "import arenite\n"
        "arenite.open(sys.argv[1], engine='aot').run()\n"
        "print([n for n in sys.modules if n not in before and n.startswith(tuple(sys.argv[2:]))])\n"
    )
    not_needed = [
        *("arenite_codegen", "tflite", "jinja2", "ai_edge_litert"),
        *("arenite.detection", "arenite.labels", "arenite.preprocess", "PIL"),
        *("importlib.metadata", "email", "zipfile", "csv", "shutil", "tempfile"),
        *("pathlib", "hashlib", "_hashlib"),
    ]
    command = [sys.executable, "-c", program, str(model), *not_needed]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(("size", "openssl"), [(0, False), (100_001, False), (1 << 19, True)])
def test_digests_with_and_without_openssl_are_the_same(size: int, openssl: bool) -> None:
    program = (
        "import sys\n"
        "from arenite.compiled import _sha256\n"
        f"print(_sha256(bytes(range(256)) * ({size} // 256) + b'x' * ({size} % 256)), 'hashlib' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    content = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    assert done.stdout.split() == [hashlib.sha256(content).hexdigest(), str(openssl)]


def test_a_cache_that_cannot_be_written(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("ARENITE_CACHE", str(tmp_path / "file"))
    with pytest.raises(OutputError, match="ARENITE_CACHE"):
        arenite.open(model, engine="aot")


def test_operators_without_a_kernel_are_named(tmp_path: Path) -> None:
    builder = ModelBuilder()
    x, y = (builder.tensor(name, (1, 4), "int8", scales=[0.1]) for name in "xy")
    builder.operator("COS", [x], [y])
    path = tmp_path / "cosine.tflite"
    path.write_bytes(builder.finish([x], [y]))
    with pytest.raises(UnsupportedOperatorError, match=r"cosine\.tflite.*COS"):
        arenite.open(path, engine="aot")


def test_what_it_cannot_do_is_said(model: Path) -> None:
    with pytest.warns(FallbackWarning) as told:
        session = arenite.open(model, engine="aot", threads=3, delegate="libedgetpu.so.1")
    assert [refusal.what for refusal in session.report.refusals] == ["3 threads", "delegate libedgetpu.so.1"]
    assert len(told) == 2 and session.report.threads == 1
    with pytest.raises(UsageError, match="no kernels 'reference'"):
        arenite.open(model, engine="aot", kernels="reference")


def test_cache_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ARENITE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache_folder() == tmp_path / "arenite"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == Path.home() / ".cache" / "arenite"


def test_a_user_without_a_home_is_told_to_name_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARENITE_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    with pytest.raises(OutputError, match=r"no home folder.*ARENITE_CACHE"):
        cache_folder()
