# SPDX-License-Identifier: Apache-2.0
"""The command line from the outside: every command, its JSON, its exit code, its output for a person."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from arenite import cli
from arenite._reports import plain
from arenite._text import lines
from arenite.contract import CONTRACT_METADATA, make_contract
from arenite.tflite_graph import parse_graph
from support import bad_models
from support.builder import ModelBuilder

Command = Callable[..., "subprocess.CompletedProcess[str]"]
COMMANDS = (
    "convert",
    "inspect",
    "skew",
    "bundle",
    "build",
    "verify",
    "bench",
    "compare",
    "compare-models",
    "energy",
    "doctor",
)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "small model.tflite"
    path.write_bytes(bad_models.good_model())
    return path


@pytest.fixture(scope="module")
def host_bundle(model: Path, arenite_command: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle for this machine, built."""
    out = tmp_path_factory.mktemp("bundle") / "out"
    assert arenite_command("bundle", model, "--board", "host", "-o", out).returncode == 0
    assert arenite_command("build", out).returncode == 0
    return out


def answer(done: subprocess.CompletedProcess[str]) -> dict[str, object]:
    """The JSON of a command that said yes, with nothing beside it."""
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command(arenite_command: Command, command: str) -> None:
    done = arenite_command(command, "--help")
    assert done.returncode == 0
    assert "--json" in done.stdout and "--debug" in done.stdout and done.stderr == ""


def test_help_names_every_command(arenite_command: Command) -> None:
    done = arenite_command("--help")
    assert done.returncode == 0
    assert all(command in done.stdout for command in COMMANDS)


def test_version(arenite_command: Command) -> None:
    import arenite

    assert arenite_command("--version").stdout.strip() == f"arenite {arenite.__version__}"


def test_inspect(arenite_command: Command, model: Path) -> None:
    report = answer(arenite_command("inspect", model, "--json"))
    assert report["operators"] == {"CONV_2D": 1, "SOFTMAX": 1}
    assert report["quantisation"] == "int8" and report["contract"] is None
    text = arenite_command("inspect", model).stdout
    assert "int8 1x6x6x3" in text and "CONV_2D" in text


def test_bundle_report(arenite_command: Command, model: Path, tmp_path: Path) -> None:
    """The fields that scripts rely on, and what they say of this model."""
    done = arenite_command("bundle", model, "--board", "qemu-mps2-an386", "-o", tmp_path / "o", "--json")
    report = answer(done)
    assert report["board"] == "qemu-mps2-an386"
    assert report["macs"] == 6 * 6 * 3 * 4 and report["mac_factor"] == 1.0
    assert 108 + 4 <= int(str(report["arena_lower_bound_bytes"])) <= int(str(report["arena_bytes"])) < 300
    assert int(str(report["weights_bytes"])) >= 432 + 4 * 4
    assert report["code_bytes"] is None and report["stack_bytes"] is None
    manifest = json.loads((tmp_path / "o/manifest.json").read_text())
    assert report["model_sha256"] == manifest["models"][0]["sha256"]
    operators = report["operators"]
    assert isinstance(operators, list)
    assert [row["kind"] for row in operators] == ["CONV_2D", "SOFTMAX"]
    assert {"index", "kind", "kernel", "macs", "ring_rows"} <= set(operators[0])
    assert done.stderr == ""


def test_bundle_is_deterministic(arenite_command: Command, model: Path, tmp_path: Path) -> None:
    """Two runs in different folders, with different hash seeds and locales, give the same bytes."""
    trees = []
    for name, seed in (("a", "1"), ("bb", "77")):
        out = tmp_path / name / "out"
        env = {"PYTHONHASHSEED": seed, "LC_ALL": "C"}
        done = arenite_command("bundle", model, "--board", "host", "-o", out, env=env)
        assert done.returncode == 0, done.stderr
        files = sorted(path for path in out.rglob("*") if path.is_file())
        trees.append({path.relative_to(out).as_posix(): path.read_bytes() for path in files})
    assert trees[0] == trees[1]


def test_exact_arena_fits_and_one_byte_less_does_not(
    arenite_command: Command, model: Path, tmp_path: Path
) -> None:
    command = ["bundle", model, "--board", "host", "-o", tmp_path / "out"]
    need = int(str(answer(arenite_command(*command, "--json"))["arena_bytes"]))
    assert arenite_command(*command, "--arena-bytes", str(need)).returncode == 0
    done = arenite_command(*command, "--arena-bytes", str(need - 1))
    assert done.returncode == 1 and f"{need:,}" in done.stderr


def test_build_and_verify(arenite_command: Command, host_bundle: Path) -> None:
    report = answer(arenite_command("build", host_bundle, "--json"))
    assert int(str(report["code_bytes"])) > 0 and int(str(report["weights_bytes"])) > 0
    proof = answer(arenite_command("verify", host_bundle, "--on", "emulator", "--json"))
    assert proof["identical"] is True and proof["first_difference"] is None
    assert int(str(proof["vectors"])) >= 3 and "tflite-micro" in str(proof["authority"])
    assert "identical" in arenite_command("verify", host_bundle).stdout


def test_verify_says_no(arenite_command: Command, host_bundle: Path, tmp_path: Path) -> None:
    """One expected byte changed: exit 1, and the place of the byte."""
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(host_bundle, copy)
    golden = copy / "vectors" / "output_001.bin"
    data = bytearray(golden.read_bytes())
    data[2] ^= 1
    golden.write_bytes(bytes(data))
    done = arenite_command("verify", copy, "--json")
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert report["identical"] is False
    first = report["first_difference"]
    assert (first["vector"], first["output"], first["index"]) == (1, 0, 2)
    assert "DIFFERENT" in arenite_command("verify", copy).stdout


def test_bench(arenite_command: Command, model: Path, tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    done = arenite_command("bench", model, "--count", "20", "--seconds", "0", "--json", "--out", tmp_path / "o")
    report = answer(done)
    assert json.loads((tmp_path / "o" / "bench.json").read_text()) == report
    outcome, latency = report["outcome"], report["latency"]
    assert report["scenario"] == "SingleStream" and isinstance(outcome, dict) and outcome["valid"] is False
    assert isinstance(latency, dict) and 0 < latency["p50_ms"] <= latency["p90_ms"]
    page = tmp_path / "page.html"
    text = arenite_command("bench", model, "--count", "20", "--seconds", "0", "--html", page).stdout
    assert "latency" in text and "energy" in text and "600 s are wanted" in text
    assert "64 queries are wanted, not 20" in text and "<svg" in page.read_text()


def test_compare(arenite_command: Command, model: Path, tmp_path: Path) -> None:
    """Exit 0, 1 and 2; the second run is the first one made twice as slow."""
    pytest.importorskip("ai_edge_litert")
    before, after = tmp_path / "before", tmp_path / "after"
    report = answer(arenite_command("bench", model, "--seconds", "0", "--json", "--out", before))
    times = report["times_ms"]
    assert isinstance(times, list)
    after.mkdir()
    slower = {**report, "times_ms": [2 * time_ms for time_ms in times]}
    (after / "bench.json").write_text(json.dumps(slower))
    done = arenite_command("compare", before / "bench.json", after, "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 1 and found["verdict"] == "slower"
    assert [row["ratio"] for row in found["rows"]] == pytest.approx([2.0] * 4)
    assert arenite_command("compare", after, before).returncode == 0
    assert arenite_command("compare", before, after, "--max-ratio", "100").returncode == 0
    (after / "bench.json").write_text(json.dumps({**report, "model_sha256": "0" * 64}))
    done = arenite_command("compare", before, after)
    assert done.returncode == 2 and "model differs" in done.stderr and done.stdout == ""


@pytest.fixture
def here(no_meter: None, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command in this process, which finds no meter; what it prints."""

    def run(*words: str | Path) -> str:
        assert cli.main([*map(str, words)]) == 0
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("command", [("bench", "--seconds", "0"), ("energy", "--duration", "0.2")])
@pytest.mark.parametrize("declared", [False, True])
def test_energy_is_tagged_for_what_it_is(
    here: Callable[..., str], model: Path, tmp_path: Path, command: tuple[str, ...], declared: bool
) -> None:
    """Every energy in the JSON says where it comes from; without a meter no figure is `measured`."""
    pytest.importorskip("ai_edge_litert")
    costs = tmp_path / "costs.toml"
    costs.write_text('j_per_mac = 1e-12\nj_per_byte = 1e-10\nsource = "a data sheet"\n')
    options = ("--energy-model", costs) if declared else ()
    name, *words = command
    text = here(name, model, *words, *options, "--json")
    tags = set(re.findall(r'"tag": "(\w+)"', text))
    assert tags == ({"modelled"} if declared else {"unknown"})
    figures = re.findall(r'"energy_mj": (\S+),', text)
    assert figures and all((figure != "null") == declared for figure in figures)
    assert not declared or "a data sheet" in text


@pytest.mark.parametrize("command", [("bench", "--seconds", "0"), ("energy", "--duration", "0.2")])
def test_energy_on_this_machine_has_a_tag(arenite_command: Command, model: Path, command: tuple[str, ...]) -> None:
    """Whatever meters are here."""
    pytest.importorskip("ai_edge_litert")
    name, *words = command
    text = arenite_command(name, model, *words, "--json").stdout
    tags = set(re.findall(r'"tag": "(\w+)"', text))
    assert tags and tags <= {"measured", "unknown"}


def test_energy_without_a_meter_says_so(here: Callable[..., str], model: Path, tmp_path: Path) -> None:
    """A declared model is tagged as one; without it nothing is known. No constant poses as a measurement."""
    pytest.importorskip("ai_edge_litert")
    report = json.loads(here("energy", model, "--duration", "0.2", "--battery-wh", "10", "--json"))
    energy, stages = report["energy"], report["stages"]
    assert report["meter"] is None
    assert energy["tag"] == "unknown" and energy["energy_mj"] is None and "no meter" in energy["source"]
    assert report["battery_inferences"] is None
    assert [stage["stage"] for stage in stages] == ["total"] and stages[0]["time_ms"] > 0
    costs = tmp_path / "costs.toml"
    costs.write_text('j_per_mac = 1e-9\nj_per_byte = 1e-9\nsource = "datasheet"\n')
    energy = json.loads(here("energy", model, "--duration", "0.2", "--energy-model", costs, "--json"))["energy"]
    # 432 MACs and 568 bytes, as the model's own test counts them.
    assert energy["tag"] == "modelled" and energy["energy_mj"] == pytest.approx(1e3 * 1e-9 * (432 + 568))
    assert energy["interval_mj"] is None and energy["average_w"] is None
    assert "energy" in here("energy", model, "--duration", "0.2")


def test_energy_side_by_side(here: Callable[..., str], model: Path, tmp_path: Path) -> None:
    """Two engines in one report: the same stages, each with figures of its own, and their ratio in the table."""
    pytest.importorskip("ai_edge_litert")
    costs, page = tmp_path / "costs.toml", tmp_path / "energy.html"
    costs.write_text('j_per_mac = 1e-9\nj_per_byte = 0\nidle_w = 1\nsource = "datasheet"\n')
    words = ("energy", model, "--duration", "0.2", "--energy-model", costs, "--engine", "aot", "--against", "litert")
    report = json.loads(here(*words, "--html", page, "--json"))
    other = report["against"]
    assert (report["engine"]["engine"], other["engine"]["engine"], other["against"]) == ("aot", "litert", None)
    assert [stage["stage"] for stage in other["stages"]] == [stage["stage"] for stage in report["stages"]]
    assert other["energy"]["energy_mj"] == pytest.approx(report["energy"]["energy_mj"])
    assert "total, litert" in page.read_text(encoding="utf-8")
    text = here(*words)
    header, row = text.splitlines()[-2:]
    assert header.split()[:4] == ["stage", "ms", "against", "ms"]
    name, first_ms, against_ms, ratio = row.split()[:4]
    assert name == "total"
    assert float(ratio) == pytest.approx(float(first_ms) / float(against_ms), rel=0.5)


def test_energy_against_an_engine_that_is_none(arenite_command: Command, model: Path) -> None:
    done = arenite_command("energy", model, "--duration", "0.2", "--against", "warp")
    assert done.returncode == 2 and "warp" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [("bench", "--seconds", "3600"), ("energy", "--duration", "3600")])
def test_page_that_cannot_be_written_is_told_first(
    arenite_command: Command, model: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    """Before an hour is measured, not after."""
    name, *words = command
    (tmp_path / "file").write_text("")
    for page in (tmp_path / "gone" / "page.html", tmp_path, tmp_path / "file" / "page.html"):
        done = arenite_command(name, model, *words, "--html", page, timeout_s=60)
        assert done.returncode == 2 and str(page) in done.stderr and "Traceback" not in done.stderr
        assert done.stdout == ""


def test_report_that_cannot_be_kept_is_told_first(arenite_command: Command, model: Path, tmp_path: Path) -> None:
    (tmp_path / "o" / "bench.json").mkdir(parents=True)
    done = arenite_command("bench", model, "--seconds", "3600", "--out", tmp_path / "o", timeout_s=60)
    assert done.returncode == 2 and "bench.json" in done.stderr and done.stdout == ""


@pytest.mark.parametrize("name", ["bench", "energy"])
def test_page_is_left_alone_when_nothing_is_measured(arenite_command: Command, tmp_path: Path, name: str) -> None:
    old, fresh, link = tmp_path / "old.html", tmp_path / "fresh.html", tmp_path / "link.html"
    old.write_text("an earlier run")
    link.symlink_to(fresh)
    for page in (old, fresh, link):
        assert arenite_command(name, tmp_path / "gone.tflite", "--html", page).returncode == 2
    assert old.read_text() == "an earlier run" and not fresh.exists() and link.is_symlink()


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs a device that is always full")
@pytest.mark.parametrize("command", [("bench", "--seconds", "0"), ("energy", "--duration", "0.2")])
def test_result_is_shown_though_the_page_cannot_be_kept(
    arenite_command: Command, model: Path, command: tuple[str, ...]
) -> None:
    """A disk that fills up meanwhile costs the page, not the figures."""
    pytest.importorskip("ai_edge_litert")
    name, *words = command
    done = arenite_command(name, model, *words, "--html", "/dev/full")
    assert done.returncode == 2 and "no space" in done.stderr and "Traceback" not in done.stderr
    assert "energy     " in done.stdout


@pytest.mark.parametrize("name", ["bench", "energy"])
def test_folder_without_pictures(arenite_command: Command, model: Path, tmp_path: Path, name: str) -> None:
    done = arenite_command(name, model, "--picture", tmp_path)
    assert done.returncode == 2 and f"the {name.replace('bench', 'benchmark')} folder holds no picture" in done.stderr


def test_energy_of_each_stage_by_a_declared_meter(arenite_command: Command, tmp_path: Path) -> None:
    """A logger that says 4 W all the time: each stage's gross energy is 4 W times its time, and none is above idle."""
    pytest.importorskip("ai_edge_litert")
    picture, path, log = tmp_path / "grey.png", tmp_path / "model.tflite", tmp_path / "log.csv"
    Image.new("L", (6, 6), 90).save(picture)
    path.write_bytes(picture_model())
    log.write_text("")
    declaration = tmp_path / "meter.toml"
    columns = '[columns]\npower = { index = 0, unit = "W" }\n'
    declaration.write_text(f'name = "logger"\nfile = "{log}"\ninterval_s = 0.01\n{columns}')
    writer = "import sys, time\nwith open(sys.argv[1], 'a') as f:\n  while True:\n"
    writer += "    f.write('4.0\\n'); f.flush(); time.sleep(0.01)\n"
    with subprocess.Popen([sys.executable, "-c", writer, str(log)]) as process:
        try:
            command = ("energy", path, "--picture", picture, "--meter", f"declared:{declaration}", "--duration", "4")
            report = answer(arenite_command(*command, "--json"))
        finally:
            process.kill()
    assert report["meter"] == "logger"
    stages = report["stages"]
    assert isinstance(stages, list)
    assert [stage["stage"] for stage in stages] == ["read", "decode", "resize", "invoke", "post", "total"]
    for stage in stages:
        energy = stage["energy"]
        assert energy["average_w"] == pytest.approx(4.0) and energy["idle_w"] == pytest.approx(4.0)
        assert energy["tag"] == "unknown" and "no more than idle" in energy["source"]
        assert energy["gross_mj"] == pytest.approx(4.0 * stage["time_ms"], rel=0.05)


def test_energy_refuses_what_makes_no_sense(arenite_command: Command, model: Path) -> None:
    for words, named in (
        (("--meter", "wattmeter"), "there is no meter 'wattmeter'"),
        (("--meter", "ppk2:port"), "mv="),
        (("--battery-wh", "-1"), "battery"),
        (("--duration", "0"), "duration"),
        (("--energy-model", "gone.toml"), "gone.toml"),
    ):
        done = arenite_command("energy", model, *words)
        assert done.returncode == 2 and named in done.stderr and "Traceback" not in done.stderr


def test_doctor(arenite_command: Command) -> None:
    done = arenite_command("doctor", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == (0 if report["healthy"] else 1)
    names = {tool["name"] for tool in report["tools"]}
    assert {"ai-edge-litert", "ziglang", "unicorn", "qemu-system-arm"} <= names
    assert all(tool["cure"] for tool in report["tools"])
    assert all(meter["usable"] or meter["problem"] for meter in report["meters"])
    assert "can do" in arenite_command("doctor").stdout


def test_closed_pipe_is_no_error(model: Path) -> None:
    """`arenite ... | head -1` ends quietly."""
    command = f"'{sys.executable}' -m arenite inspect '{model}' | head -1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=120)
    assert done.stderr == "" and done.stdout.startswith("model")


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_interrupt_is_one_line(model: Path, tmp_path: Path) -> None:
    """Ctrl-C in the middle: exit 130, one line."""
    command = [sys.executable, "-m", "arenite", "bench", str(model), "--seconds", "60"]
    # A shell that starts the tests in the background makes its children ignore the signal.
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed
    )
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=30)
    assert process.returncode == 130 and out == ""
    assert error.strip().splitlines()[-1] == "arenite: interrupted" and "Traceback" not in error


def test_plain_values() -> None:
    """Reports hold NumPy numbers, paths, bytes and numbers that JSON has no word for."""
    value = {
        "a": np.float32(0.5),
        "b": (np.int8(-3), Path("x/y")),
        "c": b"\x01\xff",
        "d": float("inf"),
        "e": float("nan"),
        "f": np.arange(2),
        3: None,
    }
    assert plain(value) == {
        "a": 0.5,
        "b": [-3, "x/y"],
        "c": "01ff",
        "d": None,
        "e": None,
        "f": [0, 1],
        "3": None,
    }


def test_table_aligns() -> None:
    rows: list[tuple[str, ...]] = [("stage", "ms"), ("read", "10.00"), ("x", "2.5")]
    assert lines.table(rows, frozenset({1})) == ["stage     ms", "read   10.00", "x        2.5"]


def test_printable_shows_what_cannot_be_printed() -> None:
    assert lines.printable("a\nb\x1b[31m ü \ud800") == "a\\nb\\x1b[31m ü \\ud800"


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs a device that is always full")
@pytest.mark.parametrize("words", ["inspect '{}' --json", "inspect '{}'", "--version", "inspect gone.tflite --json"])
def test_full_disk_is_one_line(model: Path, words: str) -> None:
    done = in_shell(f"{words.format(model)} > /dev/full")
    assert done.returncode == 2
    assert done.stderr.startswith("arenite: error: ") and done.stderr.count("\n") == 1


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams(model: Path, closed: str) -> None:
    assert in_shell(f"inspect '{model}' {closed}").returncode == 0
    done = in_shell(f"inspect gone.tflite {closed}")
    assert done.returncode == 2 and "Traceback" not in done.stderr and done.stdout == ""


def test_name_that_standard_output_cannot_encode(model: Path, arenite_command: Command, tmp_path: Path) -> None:
    named = tmp_path / "é.tflite"
    named.write_bytes(model.read_bytes())
    done = arenite_command("inspect", named, env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0 and "\\xe9.tflite" in done.stdout and done.stderr == ""


def test_option_leaves_the_model_alone(arenite_command: Command, tmp_path: Path) -> None:
    """A path after an option with one path is the positional argument; a folder stands for its pictures."""
    picture = tmp_path / "shown" / "grey.png"
    picture.parent.mkdir()
    Image.new("L", (6, 6), 90).save(picture)
    path = tmp_path / "model.tflite"
    path.write_bytes(picture_model())
    for shown in (picture, picture.parent):
        short = ("--count", "3", "--seconds", "0")
        done = arenite_command("bench", *short, "--picture", shown, "--picture", picture, path)
        assert done.returncode == 0, done.stderr
        assert "decode" in done.stdout
    done = arenite_command("bench", "--picture", tmp_path / "gone", path)
    assert done.returncode == 2 and "gone" in done.stderr
    parsed = cli._parser().parse_args(["convert", "--calibration", "a", "--calibration", "b", "m.keras", "-o", "m"])
    assert (parsed.calibration, parsed.source) == (["a", "b"], "m.keras")


@pytest.mark.parametrize("option", ["--normalisation", "--colour", "--crop", "--filter", "--meaning"])
def test_choices_are_named(arenite_command: Command, option: str) -> None:
    done = arenite_command("convert", "m.keras", "-o", "m.tflite", "--calibration", "p", option, "wrong")
    assert done.returncode == 2
    assert option in done.stderr and "choose from" in done.stderr and "--help" in done.stderr


def in_shell(words: str) -> subprocess.CompletedProcess[str]:
    command = f"'{sys.executable}' -m arenite {words}"
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=120)


def picture_model() -> bytes:
    """Passes a grey 2x2 picture through, with the contract that says so."""
    builder = ModelBuilder()
    x = builder.tensor("x", (1, 2, 2, 1), "int8", scales=[1 / 255], zero_points=[-128])
    y = builder.tensor("y", (1, 2, 2, 1), "int8", scales=[1 / 255], zero_points=[-128])
    builder.operator("RELU", [x], [y])
    contract = make_contract(parse_graph(builder.finish([x], [y])), normalisation="unit")
    builder.metadata(CONTRACT_METADATA, contract.to_json().encode())
    return builder.finish([x], [y])
