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
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from support.graph_batch import ISA_LEVELS, GraphBatch, GraphCrash, prebuild
from support.graphs import GraphCase, random_graph, random_graphs
from support.host_compiler import HostCompiler, find_compiler
from support.mps3 import find_mps3_compiler
from support.tflm import TflmModel

__all__ = ["Result", "check_cases", "check_graphs", "main"]

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
        part = [
            (f"{kind}:{seed}", seed, random_graph(kind, seed)) for kind, seed in wanted[start : start + batch]
        ]
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


def _compare(graphs: GraphBatch, index: int, case: GraphCase, seed: int) -> str | None:
    oracle = TflmModel(case.model_bytes)
    for number, inputs in enumerate(case.vectors):
        expected = oracle.run(inputs)
        offset = 4 * ((seed + number) % 4)
        for mode in (0, 1 + (seed * 3 + number) % 0xFFFF):
            try:
                found = graphs.run(index, inputs, expected, offset, mode)
                problem = _first_difference(expected[0], found[0])
            except GraphCrash as crash:
                problem = str(crash)
            if problem is not None:
                return f"vector {number}, offset {offset}, mode {mode}: {problem}"
    return None


def _first_difference(want: Array, got: Array) -> str | None:
    if np.array_equal(want, got):
        return None
    where = tuple(int(i) for i in np.argwhere(want != got)[0])
    count = np.count_nonzero(want != got)
    return f"{count} of {want.size} bytes differ, at {where} {got[where]} instead of {want[where]}"


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="random_graphs_cli", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--compiler", choices=["gcc", "clang", "zig"])
    parser.add_argument("--isa", choices=[*ISA_LEVELS, "mve"], default="portable", help="which kernels")
    parser.add_argument("--only", metavar="KIND:SEED", help="one graph")
    arguments = parser.parse_args(argv)
    compiler: HostCompiler | None = find_mps3_compiler()
    if arguments.isa != "mve":
        compiler = find_compiler(arguments.sanitize, arguments.compiler)
    if compiler is None:
        print("no compiler: pip install 'arenite[firmware]'", file=sys.stderr)
        return 2
    wanted = random_graphs(arguments.count, arguments.seed)
    if arguments.only:
        kind, _, seed = arguments.only.partition(":")
        wanted = [(kind, int(seed))]
    print(f"{len(wanted)} graphs, {arguments.isa}, {compiler.name}, sanitisers: {compiler.sanitisers}")
    with tempfile.TemporaryDirectory(prefix="arenite-kernels-") as folder:
        result = _report(check_graphs(wanted, compiler, prebuild(compiler, Path(folder)), isa=arguments.isa))
    print(result.summary())
    return 1 if result.failures else 0


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
