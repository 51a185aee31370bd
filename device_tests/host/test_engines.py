# SPDX-License-Identifier: Apache-2.0
"""Engines behind one interface: the choice, what is refused and said, options of opening, threads, moving memory."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import arenite
from arenite.engines import Placement
from arenite.engines.litert import has_static_shapes
from arenite.errors import ConcurrentUseError, FallbackWarning, MissingToolError, ModelError, UsageError
from support import bad_models
from support.builder import ModelBuilder
from support.colour_model import colour_model
from support.host_compiler import find_compiler
from support.tflm import run_tflm

Array = npt.NDArray[np.int8]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.tflite"
    path.write_bytes(bad_models.good_model())
    return path


def picture(seed: int) -> Array:
    return np.random.default_rng(seed).integers(-128, 128, (1, 6, 6, 3)).astype(np.int8)


def answer(session: arenite.Session, seed: int) -> Array:
    session.input[...] = picture(seed)
    session.run()
    return session.output.copy()


def test_unknown_engine_is_named(model: Path) -> None:
    with pytest.raises(UsageError, match=r"no engine 'gpu' for a tflite model.*litert or tflite-runtime or aot"):
        arenite.open(model, engine="gpu")
    with pytest.raises(UsageError, match="no engine 'onnxruntime' for a tflite model"):
        arenite.open(model, engine="onnxruntime")


def test_missing_engine_is_passed_over_and_said(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """LiteRT stands in for the second engine here: `tflite-runtime` itself wants a NumPy of its own."""
    from arenite.engines import litert

    monkeypatch.setattr(litert.TfliteRuntime, "_module", staticmethod(litert.LiteRt._module))
    monkeypatch.setattr(litert.LiteRt, "_module", staticmethod(_not_installed))
    session = arenite.open(model)
    assert session.report.engine == "tflite-runtime"
    assert [refusal.what for refusal in session.report.refusals] == ["engine litert"]
    assert "ai-edge-litert is not installed" in session.report.refusals[0].reason
    with pytest.raises(MissingToolError, match="ai-edge-litert"):
        arenite.open(model, engine="litert")


def _not_installed() -> None:
    raise ImportError


def test_missing_delegate_is_a_warning_that_names_the_operators(model: Path) -> None:
    with pytest.warns(FallbackWarning, match=r"libnone\.so was refused.*LiteRT's own kernels.*CONV_2D, SOFTMAX"):
        session = arenite.open(model, delegate="libnone.so")
    refusal = session.report.refusals[0]
    assert refusal.what == "delegate libnone.so" and refusal.operators == ("CONV_2D", "SOFTMAX")
    assert "libnone.so" in refusal.reason
    assert np.array_equal(answer(session, 1), answer(arenite.open(model), 1))
    assert [step.name for step in session.cold_start.steps] == ["read", "import", "delegate", "build"]


# The start of TensorFlow Lite's TfLiteDelegate; the rest may be zero.
DELEGATE = """
#include <stddef.h>
#include <stdint.h>
static int prepare(void *context, void *delegate) { (void)context; (void)delegate; return STATUS; }
static struct {
    void *data;
    int (*prepare)(void *, void *);
    void *buffers[3];
    int64_t flags;
    void *builder;
} delegate = {NULL, prepare, {NULL, NULL, NULL}, 0, NULL};
void *tflite_plugin_create_delegate(char **keys, char **values, size_t count, void (*say)(const char *)) {
    (void)keys; (void)values; (void)count;
    if (STATUS == 2) { say("the chip is not plugged in"); return NULL; }
    return &delegate;
}
void tflite_plugin_destroy_delegate(void *d) { (void)d; }
"""


@pytest.mark.parametrize(
    ("status", "kernels", "said"),
    [(0, "builtin", "it took none"), (1, "fast", "application failure"), (2, "fast", "the chip is not plugged in")],
)
def test_real_delegates_that_do_not_help(model: Path, tmp_path: Path, status: int, kernels: str, said: str) -> None:
    """A library that takes nothing, one that fails to prepare, one that finds no chip: the runtime's own loader."""
    compiler = find_compiler(sanitise=False)
    if compiler is None:
        pytest.skip("no C compiler: pip install 'arenite[firmware]'")
    source, library = tmp_path / "delegate.c", tmp_path / f"libdelegate{status}.so"
    source.write_text(DELEGATE)
    options = ["-shared", "-fPIC", f"-DSTATUS={status}"]
    subprocess.run([*compiler.command, *options, str(source), "-o", str(library)], check=True)
    with pytest.warns(FallbackWarning, match=rf"libdelegate{status}\.so was refused.*{said}.*CONV_2D, SOFTMAX"):
        session = arenite.open(model, delegate=str(library), delegate_options={"device": "0"}, kernels=kernels)
    assert len(session.report.refusals) == 1
    assert np.array_equal(answer(session, 1), answer(arenite.open(model, kernels=kernels), 1))


@pytest.mark.filterwarnings("ignore::arenite.errors.FallbackWarning")
@pytest.mark.parametrize("options", [{}, {"mmap": False}, {"lock": True}, {"warm_up": 3}, {"threads": 2}])
def test_options_of_opening_do_not_change_the_answer(model: Path, options: dict[str, int]) -> None:
    expected = answer(arenite.open(model), 5)
    session = arenite.open(model, **options)  # type: ignore[arg-type]
    assert np.array_equal(answer(session, 5), expected)


def test_cold_start_is_a_timeline(model: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    before = os.sched_getaffinity(0)
    try:
        found = arenite.open(model, warm_up=2, cpus=[cpu]).cold_start
        assert os.sched_getaffinity(0) == {cpu}
    finally:
        os.sched_setaffinity(0, before)
    assert [step.name for step in found.steps] == ["pin", "read", "import", "build", "warm-up"]
    assert found.steps[-1].note == "2 runs on zeros"
    ends = [step.start_ms + step.duration_ms for step in found.steps]
    assert all(end <= after.start_ms for end, after in zip(ends, found.steps[1:], strict=False))
    assert ends[-1] <= found.total_ms


def test_a_file_that_is_read_may_go_away(model: Path) -> None:
    session = arenite.open(model, mmap=False)
    expected = answer(session, 3)
    model.write_bytes(b"\0" * model.stat().st_size)
    assert np.array_equal(answer(session, 3), expected)


def test_refused_cpus_are_said(model: Path) -> None:
    with pytest.warns(FallbackWarning, match=r"CPUs \[4000\] was refused \(sched_setaffinity: .*CPUs here: \d"):
        session = arenite.open(model, cpus=[4000])
    assert session.report.refusals[0].what == "CPUs [4000]"
    assert session.cold_start.steps[0].note.startswith("refused: sched_setaffinity")


def test_refused_lock_is_said(model: Path) -> None:
    """In a process whose limit allows nothing to be locked; a privileged one has no limit."""
    program = (
        "import resource, sys, warnings, arenite\n"
        "resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))\n"
        "warnings.simplefilter('ignore')\n"
        "session = arenite.open(sys.argv[1], lock=True)\n"
        "session.run()\n"
        "print([r.reason for r in session.report.refusals])\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(model)], capture_output=True, text=True, check=True)
    said = done.stdout.strip()
    assert said == "[]" if os.geteuid() == 0 else "mlockall" in said


@pytest.mark.parametrize("options", [{"warm_up": -1}, {"warm_up": 1.5}, {"cpus": []}, {"cpus": [-1]}, {"cpus": ["a"]}])
def test_wrong_options_are_named(model: Path, options: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=next(iter(options))):
        arenite.open(model, **options)  # type: ignore[arg-type]


def in_threads(work: Callable[[int], None], count: int = 4) -> list[Exception]:
    """Runs `work(0..count-1)` at once; what they raised."""
    start, raised = threading.Barrier(count), []

    def body(index: int) -> None:
        start.wait()
        try:
            work(index)
        except Exception as error:
            raised.append(error)

    threads = [threading.Thread(target=body, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_four_threads_on_four_sessions(model: Path) -> None:
    content = model.read_bytes()
    expected = {seed: run_tflm(content, [picture(seed)])[0] for seed in range(8)}
    sessions = [arenite.open(model) for _ in range(4)]

    def work(index: int) -> None:
        for i in range(300):
            found = answer(sessions[index], (index + i) % 8)
            assert np.abs(found.astype(int) - expected[(index + i) % 8]).max() <= 1

    assert in_threads(work) == []


def test_four_threads_on_one_session_are_told(model: Path) -> None:
    """One gets it, and right answers; the others one clear error."""
    session = arenite.open(model)
    expected = {seed: answer(arenite.open(model), seed) for seed in range(8)}
    everybody, right = threading.Barrier(4), []

    def work(index: int) -> None:
        try:
            for i in range(200):
                assert np.array_equal(answer(session, (index + i) % 8), expected[(index + i) % 8])
            right.append(index)
        finally:
            everybody.wait()

    raised = in_threads(work)
    assert len(right) == 1 and len(raised) == 3
    assert all(isinstance(error, ConcurrentUseError) for error in raised)
    assert "one session for each thread" in str(raised[0])


def test_classifying_in_threads_is_right_or_refused(tmp_path: Path) -> None:
    """A whole picture is one use: threads may take turns without a word, and overlapping ones are told."""
    builder = ModelBuilder()
    x, y = (builder.tensor(name, (1, 8, 8, 3), "int8", scales=[1 / 255], zero_points=[-128]) for name in "xy")
    builder.operator("RELU", [x], [y])
    path = tmp_path / "model.tflite"
    path.write_bytes(builder.finish([x], [y]))
    contract = arenite.make_contract(arenite.read_graph(path), normalisation="unit")
    session = arenite.open(path, contract=contract)
    pictures = np.zeros((4, 8, 8, 3), np.uint8)
    for i, picture in enumerate(pictures):
        picture[i, 0, 0] = 255
    told, right = [], []

    def work(index: int) -> None:
        for _ in range(200):
            try:
                assert session.classify(pictures[index]).best.index == index * 24
                right.append(index)
            except ConcurrentUseError as error:
                told.append(error)

    assert in_threads(work) == []
    assert len(told) + len(right) == 800 and right


def test_a_session_passes_from_thread_to_thread(model: Path) -> None:
    session = arenite.open(model)
    expected = answer(session, 0)
    with pytest.raises(ConcurrentUseError, match="MainThread"):
        raise in_threads(lambda _: session.run(), 1)[0]
    session.hand_over()
    for _ in range(3):  # a thread that ended holds nothing
        assert in_threads(lambda _: np.testing.assert_array_equal(answer(session, 0), expected), 1) == []
    assert np.array_equal(answer(session, 0), expected)


def test_a_thread_with_the_number_of_one_that_ended_has_the_session(model: Path) -> None:
    """The operating system gives numbers of threads away again; it must not give the session to a third thread."""
    session = arenite.open(model)
    for _ in range(20):
        first = threading.Thread(target=session.run)
        first.start()
        first.join()
        runs, over = threading.Event(), threading.Event()

        def work(runs: threading.Event = runs, over: threading.Event = over) -> None:
            session.run()
            runs.set()
            over.wait(60)

        second = threading.Thread(target=work, name="second")
        second.start()
        try:
            assert runs.wait(60)
            with pytest.raises(ConcurrentUseError, match="'second'"):
                session.run()
        finally:
            over.set()
            second.join()
        if second.ident == first.ident:
            return
    pytest.skip("this system gave no number of a thread a second time")


def test_views_outlive_session_and_threads(model: Path) -> None:
    kept: list[Array] = []

    def work(index: int) -> None:
        session = arenite.open(model)
        session.input[...] = picture(index)
        kept.append(session.input[0, 2])

    assert in_threads(work) == []
    gc.collect()
    rows = {picture(i)[0, 2].tobytes() for i in range(4)}
    assert {row.tobytes() for row in kept} == rows


def reshaping_model() -> bytes:
    """RESHAPE to a shape that is an input: the interpreter allocates the output anew at each run."""
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 12), "float32")
    shape = builder.tensor("shape", (2,), "int32")
    y = builder.tensor("y", (1, 12), "float32")
    z = builder.tensor("z", (1, 12), "float32")
    builder.operator("RESHAPE", [x, shape], [y], options="ReshapeOptions")
    builder.operator("RELU", [y], [z])
    return builder.finish([x, shape], [z])


def test_memory_that_moves_is_never_seen(tmp_path: Path) -> None:
    path = tmp_path / "moving.tflite"
    path.write_bytes(reshaping_model())
    assert not has_static_shapes(arenite.read_graph(path))
    session = arenite.open(path)
    values = np.arange(-6, 6, dtype=np.float32)
    for shape in ((3, 4), (12, 1), (2, 6), (1, 12)):
        x, wanted = session.inputs
        x[...], wanted[...] = values, shape
        session.run()
        output = session.output
        assert output.shape == shape
        assert np.array_equal(output, np.maximum(values, 0).reshape(shape))
    assert np.array_equal(x[0], values)


def test_a_run_that_fails_leaves_no_output(tmp_path: Path) -> None:
    """LiteRT finds at the run that the shape wanted has other elements than the input."""
    path = tmp_path / "moving.tflite"
    path.write_bytes(reshaping_model())
    session = arenite.open(path)
    values, wanted = session.inputs
    values[...], wanted[...] = 1, (3, 4)
    session.run()
    before = session.output
    wanted[...] = (5, 5)
    for _ in range(2):
        with pytest.raises(ModelError, match=r"moving\.tflite: litert failed to run the model"):
            session.run()
        after = session.output
        for output, said in ((before, "stale"), (after, "did not finish")):
            with pytest.raises(arenite.StaleOutputError, match=said):
                output.copy()
    wanted[...] = (4, 3)
    session.run()
    assert session.output.shape == (4, 3)
    for output in (before, after):
        with pytest.raises(arenite.StaleOutputError):
            output.copy()


def test_labels_of_a_run_that_fails_raise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "colours.tflite"
    path.write_bytes(colour_model())
    session = arenite.open(path)
    expected = session.classify(np.zeros((4, 4, 3), np.uint8)).labels
    with monkeypatch.context() as broken:
        broken.setattr(session._engine, "invoke", _fails)
        with pytest.raises(ModelError, match=r"colours\.tflite: litert failed to run the model \(the chip is gone\)"):
            session.run()
    for read in (session.labels, lambda: session.boxes((4, 4)), session.output.copy):
        with pytest.raises(arenite.StaleOutputError, match="did not finish"):
            read()
    assert "did not finish" in repr(session.output)
    session.run()
    assert session.labels() == expected


def _fails() -> None:
    raise RuntimeError("the chip is gone")


def test_a_warm_up_that_fails_is_an_error_of_the_model(tmp_path: Path) -> None:
    """On zeros the shape wanted has other elements than the input."""
    path = tmp_path / "moving.tflite"
    path.write_bytes(reshaping_model())
    arenite.open(path)
    with pytest.raises(ModelError, match=r"moving\.tflite: litert failed to run the model"):
        arenite.open(path, warm_up=1)


def test_static_models_are_viewed_in_place(model: Path) -> None:
    assert has_static_shapes(arenite.read_graph(model))
    session = arenite.open(model)
    assert session.report.placements == (Placement("XNNPACK", {"CONV_2D": 1}), Placement("LiteRT", {"SOFTMAX": 1}))


def test_damaged_onnx_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"\0\1\2", b"ONNX" * 20, b"\x3a\x02\x0a\x00"):
        path = tmp_path / "bad.onnx"
        path.write_bytes(content)
        with pytest.raises(ModelError, match=r"bad\.onnx"):
            arenite.open(path)
    with pytest.raises(ModelError, match=r"gone\.onnx"):
        arenite.open(tmp_path / "gone.onnx")
