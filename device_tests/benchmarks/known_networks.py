# SPDX-License-Identifier: Apache-2.0
"""What the image networks need that a refusal names as fitting instead.

    PYTHONPATH=device_tests python device_tests/benchmarks/known_networks.py

Prints a line for each; exits 1 if `arenite_codegen.fit.KNOWN_NETWORKS` says otherwise.
"""

from __future__ import annotations

import sys
import time

from arenite.tflite_graph import parse_graph
from arenite_codegen.emit import emit
from arenite_codegen.fit import KNOWN_NETWORKS
from arenite_codegen.legalise import legalise
from arenite_codegen.planning import plan_network
from support.keras_networks import NETWORKS, converted


def main() -> int:
    """Measure all and compare."""
    known = {network.name: (network.arena_bytes, network.weights_bytes) for network in KNOWN_NETWORKS}
    wrong = 0
    for name in NETWORKS:
        network = legalise(parse_graph(converted(name)))
        started = time.monotonic()
        planned = plan_network(network)
        plan = planned.plan
        spent_s = time.monotonic() - started
        weights = emit(planned.network, planned.schedule, plan).weights_bytes
        over = plan.arena_bytes / plan.lower_bound_bytes - 1
        arena = f"arena {plan.arena_bytes:9,} (bound +{over:.1%})"
        print(f"{name:22} {arena}, weights {weights:9,}, planned in {spent_s:.1f} s")
        if name in known and known[name] != (plan.arena_bytes, weights):
            print(f"{'':22} KNOWN_NETWORKS says {known[name]}", file=sys.stderr)
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
