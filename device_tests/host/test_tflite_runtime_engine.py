# SPDX-License-Identifier: Apache-2.0
"""tflite-runtime, in an environment of its own: it wants a NumPy that the rest of this project has left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from support import bad_models
from support.tflm import TflmModel

PACKAGES = ("tflite-runtime==2.14.0", "numpy<2", "pillow>=10", "tflite>=2.18,<3", "flatbuffers>=24.3", "tomli>=2")
PROGRAM = """
import gc, json, sys
import numpy as np
import arenite
answers = {}
for kernels in ("fast", "builtin", "reference"):
    session = arenite.open(sys.argv[1], kernels=kernels)
    found = []
    for values in np.load(sys.argv[2]):
        session.input[...] = values
        session.run()
        found.append(session.output.tolist())
    answers[kernels] = found
output, row = session.output, session.input[0, 3]
expected, kept = output.copy(), row.copy()
named = arenite.open(sys.argv[1], engine="tflite-runtime")
report = session.report
del session
gc.collect()
assert (output == expected).all() and (row == kept).all()
print(json.dumps({
    "numpy": np.__version__, "engine": report.engine, "version": report.version, "answers": answers,
    "refusals": [r.what for r in report.refusals], "fast": [p.where for p in named.report.placements],
}))
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment with tflite-runtime, or a skip that says why there is none."""
    if sys.version_info >= (3, 12):
        pytest.skip("tflite-runtime has no wheel for Python 3.12 and later")
    folder = tmp_path_factory.mktemp("tflite-runtime")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    interpreter = folder / "bin" / "python"
    pip = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"pip does not get tflite-runtime here: {done.stderr.strip().splitlines()[-1]}")
    return interpreter


@pytest.mark.slow
def test_answers_of_the_older_runtime(python: Path, repository: Path, tmp_path: Path) -> None:
    model, inputs = tmp_path / "model.tflite", tmp_path / "inputs.npy"
    model.write_bytes(bad_models.good_model())
    vectors = np.random.default_rng(0).integers(-128, 128, (6, 1, 6, 6, 3)).astype(np.int8)
    np.save(inputs, vectors)
    sources = [repository / name for name in ("sdk", "codegen", "firmware_templates")]
    done = subprocess.run(
        [str(python), "-c", PROGRAM, str(model), str(inputs)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sources))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["numpy"].startswith("1.") and (said["engine"], said["version"]) == ("tflite-runtime", "2.14.0")
    assert said["refusals"] == ["engine litert"] and said["fast"] == ["tflite-runtime"]
    reference = TflmModel(model.read_bytes())
    expected = np.array([reference.run([values])[0] for values in vectors], np.int64)
    for kernels, answers in said["answers"].items():
        assert np.abs(np.array(answers) - expected).max() <= 1, kernels
