# SPDX-License-Identifier: Apache-2.0
"""Compiles many small models into one checked program and runs them there."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from support.emission import KERNELS, RUNTIME, emit_models, kernel_sources, limits_header
from support.host_compiler import HostCompiler
from support.mps3 import BOARD as MVE_BOARD
from support.mps3 import Mps3Compiler

__all__ = ["ISA_LEVELS", "GraphBatch", "GraphCrash", "prebuild"]

Array = npt.NDArray[Any]
RUNNER = Path(__file__).parent / "graph_runner.c"
_OBJECTS = Path(__file__).parents[2] / "build" / "objects"
# Levels of arenite_host_isa.h by name. `portable` takes the kernels of every board instead.
ISA_LEVELS = {"portable": 0, "dsp": 0, "plain": 0, "avx2": 1, "avxvnni": 2, "avx512": 3}
# Other names and the boards whose kernels they take; the instructions of `dsp` are plain C here.
_BOARDS = {"portable": None, "dsp": "qemu-mps2-an386", "mve": MVE_BOARD}
_NO_SUCH_LEVEL = 5  # exit code of graph_runner.c
_WORD = np.dtype(np.uint32)
_STATUS = {
    1: "a byte outside the arena or outside a row was written",
    2: "the guard word behind a block was written",
}


class GraphCrash(Exception):
    """The program ended in the middle of a request; the text is the sanitiser's report."""


def prebuild(compiler: HostCompiler, guards: bool = False) -> list[Path]:
    """Compiles what all batches share: the executor with its step hook, every kernel, the runner.

    Once for all processes and runs: kept in the checkout's `build`, under a digest of all that goes in.
    """
    board = MVE_BOARD if isinstance(compiler, Mps3Compiler) else None
    limits = limits_header(guards, board=board)
    sources = [*sorted(RUNTIME.glob("*.c")), *kernel_sources(), RUNNER]
    digest = hashlib.sha256(repr((compiler.name, compiler.command, compiler.flags, limits)).encode())
    for path in [*sources, *sorted([*RUNTIME.glob("*.h"), *KERNELS.glob("*.h")])]:
        digest.update(path.read_bytes())
    folder = _OBJECTS / digest.hexdigest()[:32]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            (folder / "arenite_limits.h").write_text(limits)
            compiler.compile(sources, [folder, RUNTIME, KERNELS], folder / "obj", "-DARENITE_ON_STEP")
            (folder / "done").touch()
    return sorted((folder / "obj").glob("*.o"))


class GraphBatch:
    """Some models in one program. Use as a context manager.

    Args:
        models: TFLite files. One that codegen refuses is kept in `refusals` by its position.
        compiler: Which compiler and sanitisers.
        prebuilt: Objects of kernels, of `prebuild`, so that they are compiled once for many batches.
        guards: Watch a word behind every block; `prebuilt` must do so too.
        isa: A name of `ISA_LEVELS`.
    """

    def __init__(
        self,
        models: Sequence[bytes],
        compiler: HostCompiler,
        prebuilt: Sequence[Path],
        guards: bool = False,
        isa: str = "portable",
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="arenite-graphs-")
        root = Path(self._folder.name)
        self._compiler = compiler
        self._isa = str(ISA_LEVELS.get(isa, 0))
        self._emission = emit_models(models, root, guards, _BOARDS.get(isa, "host"))
        self.refusals = self._emission.refusals
        objects = compiler.compile(self._emission.sources, self._emission.includes, root / "obj")
        self._program = root / "graphs"
        compiler.link([*objects, *prebuilt], self._program)
        self._errors = (root / "stderr").open("w+b")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def can_run(self) -> bool:
        """Whether this processor has the level of instructions."""
        done = subprocess.run([self._program, self._isa], stdin=subprocess.DEVNULL, check=False)
        return done.returncode != _NO_SUCH_LEVEL

    def run(self, model: int, inputs: Sequence[Array], outputs: Sequence[Array], offset: int, mode: int) -> list[Array]:
        """Runs one model once, from its start.

        Args:
            model: Its position in `models`.
            inputs: One array for each graph input.
            outputs: Arrays of the outputs' shapes and types.
            offset: How far, in bytes, the arena starts off a 16-byte boundary.
            mode: 0 the executor as it ships, n > 0 every row in an allocation of its own; see graph_runner.c.

        Raises:
            GraphCrash: A sanitiser stopped the program, a guard byte was written, or a guard word of the runtime's was.
        """
        return self.run_in_turn(model, [inputs], outputs, offset, mode)[0]

    def run_in_turn(
        self, model: int, vectors: Sequence[Sequence[Array]], outputs: Sequence[Array], offset: int, mode: int
    ) -> list[list[Array]]:
        """Runs one model on several sets of inputs; it remembers what it does between them."""
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        header = np.array([self._emission.numbers[model], offset, mode, len(vectors)], _WORD)
        request = header.tobytes() + b"".join(a.tobytes() for inputs in vectors for a in inputs)
        try:
            process.stdin.write(request)
            process.stdin.flush()
        except BrokenPipeError:
            pass
        size = sum(a.nbytes for a in outputs)
        wanted = size * len(vectors) + _WORD.itemsize
        reply = process.stdout.read(wanted)
        if len(reply) < wanted:
            raise GraphCrash(self._last_words())
        status = int.from_bytes(reply[-_WORD.itemsize :], sys.byteorder)
        if status:
            raise GraphCrash(_STATUS[status])
        return [_split(reply[size * run :], outputs) for run in range(len(vectors))]

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            command = self._compiler.launch(self._program, self._isa)
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
            )
        return self._process

    def _last_words(self) -> str:
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        code = process.wait(timeout=60)
        process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        self._process = None
        self._errors.seek(0)
        text = self._errors.read().decode(errors="replace")
        self._errors.truncate(0)
        return f"the program ended with {code}\n{_headline(text)}"

    def __enter__(self) -> GraphBatch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            assert self._process.stdin is not None and self._process.stdout is not None
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(self._compiler.farewell)
                self._process.stdin.close()
            try:
                self._process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                self._process.kill()
                raise
            self._process.stdout.close()
        self._errors.close()
        self._folder.cleanup()


def _headline(report: str) -> str:
    """What went wrong and where, out of a sanitiser's pages."""
    telling = [line for line in report.splitlines() if "ERROR:" in line or "runtime error:" in line]
    frames = [line for line in report.splitlines() if line.lstrip().startswith("#") and ".c:" in line]
    return "\n".join((telling + frames[:6]) or [report[:2000]])


def _split(reply: bytes, outputs: Sequence[Array]) -> list[Array]:
    found, start = [], 0
    for like in outputs:
        found.append(np.frombuffer(reply, like.dtype, like.size, start).reshape(like.shape))
        start += like.nbytes
    return found
