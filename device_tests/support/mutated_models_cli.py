# SPDX-License-Identifier: Apache-2.0
"""Damaged models through the generator: each is refused by our own errors or compiled; no crash, hang or flood.

    python -m support.mutated_models_cli --count 200000 --seed 0

Of three models one has a number changed with the file's structure kept, one some bits flipped, one is cut off.
Memory is limited to 1 GB and each model to ten seconds. A failure prints what makes its model again: `--only SEED`.
"""

from __future__ import annotations

import argparse
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from types import FrameType

import numpy as np

from arenite.errors import AreniteError
from arenite.tflite_graph import parse_graph
from arenite_codegen.emit import emit
from arenite_codegen.ends import BoardModel, with_integer_ends
from arenite_codegen.legalise import legalise
from arenite_codegen.plan import make_plan
from arenite_codegen.schedule import make_schedule
from support.graphs import KINDS, random_graph
from support.mutations import mutate
from support.operator_networks import OPERATOR_NETWORKS

__all__ = ["damaged", "main", "outcome"]

MEMORY_BYTES = 1 << 30
SECONDS = 10
_BASES = 7  # random graphs of each kind that are damaged


def damaged(seed: int) -> tuple[bytes, str] | None:
    """The damaged model of a seed and what was done to it; None where the schema has no room for the change."""
    rng = np.random.default_rng([seed, 1])
    names = [*KINDS, *OPERATOR_NETWORKS]
    name = names[seed // 3 % len(names)]
    base = _base(name, seed % _BASES)
    if seed % 3 == 0:
        found = mutate(base, seed)
        return None if found is None else (found[0], f"{name}: {found[1]}")
    if seed % 3 == 1:
        data = bytearray(base)
        for _ in range(int(rng.integers(1, 5))):
            data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        return bytes(data), f"{name}: bits flipped"
    return base[: int(rng.integers(len(base)))], f"{name}: cut off"


@lru_cache(maxsize=1024)
def _base(name: str, seed: int) -> bytes:
    return OPERATOR_NETWORKS[name]() if name in OPERATOR_NETWORKS else random_graph(name, seed).model_bytes


def outcome(model: bytes) -> str:
    """`compiled`, or the name of our error that refused it.

    Raises:
        Exception: Anything else, which is a fault of ours.
    """
    try:
        network = legalise(with_integer_ends(BoardModel(model, parse_graph(model))).graph)
        schedule = make_schedule(network)
        emit(network, schedule, make_plan(network, schedule))
    except AreniteError as error:
        return type(error).__name__
    return "compiled"


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="mutated_models_cli", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e6, help="stop after so long")
    parser.add_argument("--only", type=int, metavar="SEED", help="one model")
    arguments = parser.parse_args(argv)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGALRM, _hangs)
    first, count = (arguments.seed, arguments.count) if arguments.only is None else (arguments.only, 1)
    end = time.monotonic() + 60 * arguments.minutes
    outcomes: Counter[str] = Counter()
    faults = 0
    for seed in range(first, first + count):
        if time.monotonic() > end:
            break
        changed = damaged(seed)
        if changed is None:
            continue
        signal.alarm(SECONDS)
        try:
            outcomes[outcome(changed[0])] += 1
        except Exception as error:
            faults += 1
            print(f"--only {seed}  {changed[1]}: {type(error).__name__}: {error}"[:400], flush=True)
        finally:
            signal.alarm(0)
        if seed % 1000 == 999:
            print(f"  {seed + 1 - first} done", file=sys.stderr, flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{sum(outcomes.values()) + faults} models: {dict(outcomes)}, {faults} faults, at most {peak} MiB")
    return 1 if faults else 0


def _hangs(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"over {SECONDS} s")


if __name__ == "__main__":
    sys.exit(main())
