# SPDX-License-Identifier: Apache-2.0
"""The child process of `arenite.reference`: runs a model by the package that its argument names, apart.

`tflite-micro` trusts its model file; of `ai-edge-litert` the reference kernels run.

Standard input is an .npz with `model`, `arena_bytes`, `outputs` (how many) and the inputs, named by `key`;
standard output is an .npz with the outputs, named the same way. Exit `REFUSED`: the interpreter refused the model;
the reason is the last line of standard error. Exit 1: Python could not import what is needed.
"""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module
from typing import Any, BinaryIO

import numpy as np

__all__ = ["LITERT", "REFUSED", "TFLM", "key", "main"]

TFLM, LITERT = "tflite-micro", "ai-edge-litert"
REFUSED = 3


def key(run: int, tensor: int) -> str:
    """Name of one input or output of one run in the archives."""
    return f"{run}_{tensor}"


def main() -> int:
    """Reads the job, runs it, writes the outputs."""
    answer = _private_output()
    name, run = _PACKAGES[sys.argv[1]]
    module = import_module(name)
    try:
        with np.load(io.BytesIO(sys.stdin.buffer.read()), allow_pickle=False) as archive:
            job = dict(archive)
        with answer:
            np.savez(answer, **run(module, job))
    except Exception as error:
        print(f"{type(error).__name__}: {error}".replace("\n", " "), file=sys.stderr)
        return REFUSED
    return 0


def _private_output() -> BinaryIO:
    """Standard output for the archive alone; what the library prints goes to standard error."""
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answer


def _run_tflm(runtime: Any, job: dict[str, Any]) -> dict[str, Any]:
    model = job["model"].tobytes()
    interpreter = runtime.Interpreter.from_bytes(model, arena_size=int(job["arena_bytes"]))
    outputs = {}
    run = 0
    while key(run, 0) in job:
        tensor = 0
        while key(run, tensor) in job:
            interpreter.set_input(job[key(run, tensor)], tensor)
            tensor += 1
        interpreter.invoke()
        for index in range(int(job["outputs"])):
            outputs[key(run, index)] = np.array(interpreter.get_output(index))
        run += 1
    return outputs


def _run_litert(module: Any, job: dict[str, Any]) -> dict[str, Any]:
    interpreter = module.Interpreter(
        model_content=job["model"].tobytes(), experimental_op_resolver_type=module.OpResolverType.BUILTIN_REF
    )
    interpreter.allocate_tensors()
    outputs = {}
    run = 0
    while key(run, 0) in job:
        for tensor, detail in enumerate(interpreter.get_input_details()):
            interpreter.set_tensor(detail["index"], job[key(run, tensor)])
        interpreter.invoke()
        for index, detail in enumerate(interpreter.get_output_details()):
            outputs[key(run, index)] = np.array(interpreter.get_tensor(detail["index"]))
        run += 1
    return outputs


_PACKAGES = {
    TFLM: ("tflite_micro.python.tflite_micro.runtime", _run_tflm),
    LITERT: ("ai_edge_litert.interpreter", _run_litert),
}


if __name__ == "__main__":
    sys.exit(main())
