# SPDX-License-Identifier: Apache-2.0
"""Random single-operator graphs, compiled for this machine, against TFLM's reference kernels, byte for byte.

    python -m support.random_graphs_cli --count 5000 --seed 0 --sanitize --isa avx2

Every graph runs three input vectors; each runs as the firmware does, its arena 0, 4, 8 or 12 bytes off a
16-byte boundary, and with each row in an allocation of its own at an offset of 0 to 15. A failure prints the
kind and the seed that make the same graph again: `--only KIND:SEED`.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from arenite._ulps import ulps_apart
from support.graph_batch import ISA_LEVELS, GraphBatch, GraphCrash, prebuild
from support.graph_case import LITERT
from support.graphs import KINDS, GraphCase, random_graph, random_graphs
from support.host_compiler import HostCompiler, find_compiler
from support.litert_reference import LiteRtReference
from support.mps3 import find_mps3_compiler
from support.tflm import TflmModel

__all__ = ["Result", "authority", "check_cases", "check_graphs", "main"]

Array = npt.NDArray[Any]
BATCH = 50


@dataclass
class Result:
    """Counts by kind, and every failure's text."""

    compared: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def summary(self) -> str:
        """One line a kind."""
        kinds = sorted(self.compared | self.refused)
        lines = [f"{k:20} {self.compared[k]:5} identical, {self.refused[k]:3} refused by name" for k in kinds]
        total = sum(self.compared.values())
        return "\n".join([*lines, f"{'all':20} {total:5} identical, {len(self.failures)} failures"])


def check_graphs(
    wanted: Sequence[tuple[str, int]],
    compiler: HostCompiler,
    prebuilt: Sequence[Path],
    batch: int = BATCH,
    guards: bool = False,
    isa: str = "portable",
) -> Iterator[Result]:
    """Compares graphs, batch by batch; yields the running result after each.

    Args:
        wanted: Kind and seed of each graph.
        compiler: What compiles and watches the run.
        prebuilt: What all batches share, of `prebuild`.
        batch: Graphs in one program.
        guards: Watch a word behind every block; `prebuilt` must do so too.
        isa: A name of `ISA_LEVELS`.
    """
    result = Result()
    for start in range(0, len(wanted), batch):
        part = [(f"{kind}:{seed}", seed, random_graph(kind, seed)) for kind, seed in wanted[start : start + batch]]
        check_cases(part, compiler, prebuilt, result, guards, isa)
        yield result


def check_cases(
    cases: Sequence[tuple[str, int, GraphCase]],
    compiler: HostCompiler,
    prebuilt: Sequence[Path],
    result: Result | None = None,
    guards: bool = False,
    isa: str = "portable",
) -> Result:
    """Compares one program's worth of cases, each with a name for messages and a seed for offsets."""
    result = result or Result()
    with GraphBatch([case.model_bytes for _, _, case in cases], compiler, prebuilt, guards, isa) as graphs:
        for index, (name, seed, case) in enumerate(cases):
            if index in graphs.refusals:
                result.refused[case.kind] += 1
                continue
            problem = _compare(graphs, index, case, seed)
            if problem is None:
                result.compared[case.kind] += 1
            else:
                result.failures.append(f"{name}  {case.description}\n    {problem}")
    return result


def authority(case: GraphCase) -> TflmModel | LiteRtReference:
    """The reference that a case must equal, its model loaded."""
    return LiteRtReference(case.model_bytes) if case.authority == LITERT else TflmModel(case.model_bytes)


def _compare(graphs: GraphBatch, index: int, case: GraphCase, seed: int) -> str | None:
    oracle = authority(case)
    expected = [oracle.run(inputs, case.outputs) for inputs in case.vectors]
    streams = [range(len(case.vectors))] if case.remembers else [range(n, n + 1) for n in range(len(case.vectors))]
    for number, stream in enumerate(streams):
        offset = 4 * ((seed + number) % 4)
        for mode in (0, 1 + (seed * 3 + number) % 0xFFFF):
            try:
                vectors = [case.vectors[i] for i in stream]
                found = graphs.run_in_turn(index, vectors, expected[0], offset, mode)
                problem = _first_problem([expected[i] for i in stream], found, case.ulps)
            except GraphCrash as crash:
                problem = str(crash)
            if problem is not None:
                return f"vector {number}, offset {offset}, mode {mode}: {problem}"
    return None


def _first_problem(wanted: Sequence[Sequence[Array]], found: Sequence[Sequence[Array]], ulps: int) -> str | None:
    for run, (want, got) in enumerate(zip(wanted, found, strict=True)):
        for output, pair in enumerate(zip(want, got, strict=True)):
            problem = _first_difference(*pair, ulps)
            if problem is not None:
                return f"run {run}, output {output}: {problem}"
    return None


def _first_difference(want: Array, got: Array, ulps: int) -> str | None:
    if want.tobytes() == got.tobytes():
        return None
    if ulps and want.dtype == np.float32 and ulps_apart(want, got).max() <= ulps:
        return None
    where = tuple(int(i) for i in np.argwhere(want != got)[0])
    count = np.count_nonzero(want != got)
    return f"{count} of {want.size} bytes differ, at {where} {got[where]} instead of {want[where]}"


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="random_graphs_cli", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--compiler", choices=["gcc", "clang", "zig"])
    parser.add_argument("--isa", choices=[*ISA_LEVELS, "mve"], default="portable", help="which kernels")
    parser.add_argument("--only", metavar="KIND:SEED", help="one graph")
    parser.add_argument("--kinds", metavar="KIND,KIND", help="graphs of these kinds alone")
    arguments = parser.parse_args(argv)
    compiler: HostCompiler | None = find_mps3_compiler()
    if arguments.isa != "mve":
        compiler = find_compiler(arguments.sanitize, arguments.compiler)
    if compiler is None:
        print("no compiler: pip install 'arenite[firmware]'", file=sys.stderr)
        return 2
    wanted = random_graphs(arguments.count, arguments.seed, _kinds(arguments.kinds))
    if arguments.only:
        kind, _, seed = arguments.only.partition(":")
        wanted = [(kind, int(seed))]
    print(f"{len(wanted)} graphs, {arguments.isa}, {compiler.name}, sanitisers: {compiler.sanitisers}")
    result = _report(check_graphs(wanted, compiler, prebuild(compiler), isa=arguments.isa))
    print(result.summary())
    return 1 if result.failures else 0


def _kinds(names: str | None) -> tuple[str, ...]:
    kinds = tuple(names.split(",")) if names else tuple(KINDS)
    unknown = set(kinds) - set(KINDS)
    if unknown:
        raise SystemExit(f"no such kind: {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    return kinds


def _report(results: Iterator[Result]) -> Result:
    shown, result = 0, Result()
    for result in results:
        for failure in result.failures[shown:]:
            print(failure, flush=True)
        shown = len(result.failures)
        done = sum(result.compared.values()) + sum(result.refused.values()) + shown
        print(f"  {done} done", file=sys.stderr, flush=True)
    return result


if __name__ == "__main__":
    sys.exit(main())
