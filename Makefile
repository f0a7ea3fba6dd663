# Two commands matter to a newcomer: `make demo` and `make test`. `make help` lists the rest.

PYTHON ?= python3
CARGO ?= cargo
GO ?= go
# One cargo profile for the extension module, the Rust tests and clippy, so that nothing is compiled twice.
CARGO_PROFILE ?= release
CARGO_FLAGS ?= --locked

VENV := .venv
BIN := $(VENV)/bin
ROOT := $(CURDIR)
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name Cargo.toml)
PYTHON_CODE := python scripts tests docs/conf.py $(wildcard zoo)
GO_SOURCES := ckks/go.mod ckks/go.sum $(shell find ckks -name '*.go')
# Suite ckks is a program of its own, in Go without C; all else works where there is no Go. What is built knows no path of this
# machine; tests and `go vet` are built likewise, so that they take what `make setup` compiled.
GO_ENV := CGO_ENABLED=0 GOFLAGS='$(strip $(GOFLAGS) -trimpath)'
GO_RUN := cd ckks && $(GO_ENV) $(GO)
NEEDS_GO := command -v $(GO) >/dev/null || { echo "privet: no '$(GO)' found: without Go 1.26 there is no suite ckks" >&2; exit 0; }
# npm fetches a browser that the operator's page is tested in.
NEEDS_NPM := command -v npm >/dev/null || { echo "privet: no 'npm' found: the operator's page is not tested" >&2; exit 0; }
# Python tests of what is not there are left out; the two lines above say so.
LEFT_OUT := $(if $(shell command -v npm),, and not browser)$(if $(shell command -v $(GO)),, and not go)
# The extension module is built by maturin and linked by Python, and benchmarks are no tests: cargo has nothing to run in
# either.
RUST_TESTS := --workspace --exclude privet-kernels --profile $(CARGO_PROFILE) $(CARGO_FLAGS)
AUDIT ?=
DIST ?= dist
RELEASE ?=
WHEEL_DATA := privet._native.data
# Four processes: tests of parties and services wait more than they compute. A file's tests stay together, and files begin in
# order: those of tests/e2e, which take longest, well before those of tests/python.
PYTEST ?= -n 4 --dist loadfile --no-loadscope-reorder
# The interpreter that PyO3 builds against, whoever calls cargo.
export PYO3_PYTHON := $(ROOT)/$(BIN)/python
# Tests start hundreds of processes: sources compiled anew and a thread of linear algebra for each core would double the time of
# a start.
export PYTHONDONTWRITEBYTECODE :=
export OPENBLAS_NUM_THREADS := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test test-rust test-go compile compile-crates test-python test-all browser mutation audit check check-rust check-go check-python docs man fmt lock wheel image-check client-wheel release-check clean

help: ## List these targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  \033[1m%-14s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.native $(VENV)/.ckks ## Create .venv with the command `privet`; quick when nothing changed
	@:

demo: setup ## Set up, then run a private inference and print it
	$(BIN)/privet run zoo/models/digits-cnn.onnx --calibration zoo/models/digits-cnn-samples.npy --input zoo/models/digit-7.png

test: test-rust test-go test-python ## Set up, then run the tests (not the slow ones)

test-rust: setup ## Only the Rust tests
	$(CARGO) test $(RUST_TESTS) --no-fail-fast

test-go: setup ## Only the Go tests (not the slow ones)
	@$(NEEDS_GO); $(GO_RUN) test -short -timeout 20m ./...

compile: setup ## Compile what test-rust and test-go run, and run nothing
	$(CARGO) test $(RUST_TESTS) --no-run
	@$(NEEDS_GO); $(GO_RUN) test -run '^$$' ./...

# One test of suites needs every crate that the module needs, and features are those of the whole workspace in both.
compile-crates: $(VENV)/.created ## Compile the crates of the extension module, which needs no Python package: beside setup
	$(CARGO) test $(RUST_TESTS) --no-run --test limits

# Where the browser cannot be fetched the page's tests fail and say so; the others run all the same.
test-python: setup ## Only the Python tests (not the slow ones)
	-@$(NEEDS_NPM); $(BIN)/python -m scripts.browser
	$(BIN)/python -m pytest $(PYTEST) -m "not slow$(LEFT_OUT)"

test-all: setup ## Every test, the slow ones too
	$(CARGO) test $(RUST_TESTS) --no-fail-fast -- --include-ignored
	@$(NEEDS_GO); $(GO_RUN) test ./...
	-@$(NEEDS_NPM); $(BIN)/python -m scripts.browser
	$(BIN)/python -m pytest $(PYTEST) -m "(slow or not slow)$(LEFT_OUT)"
	$(BIN)/python -m scripts.mutation

browser: setup ## Fetch the headless browser that tests the operator's page (70 MB from the npm registry, once)
	$(BIN)/python -m scripts.browser

mutation: setup ## Remove every mask, one at a time; a test must notice (minutes)
	$(BIN)/python -m scripts.mutation

audit: setup ## Attack Privet: known attacks, removed masks, fuzzing, timing, kills (an hour or two; AUDIT=--short)
	$(BIN)/python -m scripts.audit $(AUDIT)

check: check-rust check-go check-python docs ## Formatters, linters, types, direction of dependencies, size and names of files, documentation

check-rust: setup ## Only Rust's formatter and linter
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --profile $(CARGO_PROFILE) $(CARGO_FLAGS) -- -D warnings

check-go: setup ## Only Go's formatter and linter
	@$(NEEDS_GO); cd ckks && unformatted=$$($$($(GO) env GOROOT)/bin/gofmt -l .) && test -z "$$unformatted" || \
	    { echo "gofmt -w these: $$unformatted" >&2; exit 1; }
	@$(NEEDS_GO); $(GO_RUN) vet ./...

check-python: setup ## Only Python's formatter, linter and types, and the checks of this code
	$(BIN)/ruff format --check $(PYTHON_CODE)
	$(BIN)/ruff check $(PYTHON_CODE)
	$(BIN)/mypy $(PYTHON_CODE)
	$(BIN)/python scripts/check_direction.py
	$(BIN)/python scripts/check_files.py
	$(BIN)/python scripts/check_suites.py

docs: setup ## Build the documentation in target/docs; a broken link, reference or index fails
	$(BIN)/python -m sphinx --builder html --fresh-env --fail-on-warning --keep-going --quiet --doctree-dir target/doctrees docs target/docs

fmt: $(VENV)/.requirements ## Format all code and mend what the linter can
	$(CARGO) fmt --all
	$(BIN)/ruff check --fix-only --quiet $(PYTHON_CODE)
	$(BIN)/ruff format $(PYTHON_CODE)

lock: $(VENV)/.requirements ## Resolve requirements.in again into requirements.txt
	BIN=$(BIN) sh scripts/lock.sh

# Maturin puts what lies in privet._native.data/scripts beside the interpreter of whoever installs the wheel.
wheel: setup ## One wheel in dist: the extension and the programs of suite ckks, stripped; its platform tag is checked
	@$(NEEDS_GO); rm -rf $(WHEEL_DATA); mkdir -p $(WHEEL_DATA)/scripts && trap 'rm -rf $(WHEEL_DATA)' EXIT && \
	    cp $(addprefix $(BIN)/privet-ckks,'' .wasm .js) $(WHEEL_DATA)/scripts && \
	    $(BIN)/maturin build --profile $(CARGO_PROFILE) $(CARGO_FLAGS) --strip --interpreter $(BIN)/python --quiet --out $(DIST)
	$(BIN)/python -m scripts.wheel $(DIST)

image-check: wheel ## Builds the image of deploy by buildah (as root, without an engine or a registry) and serves a model in it
	$(BIN)/python -m scripts.image

client-wheel: $(VENV)/.requirements ## A wheel in dist of the program privet-client alone, which needs no packages (3 MB)
	$(BIN)/maturin build --manifest-path crates/client/Cargo.toml --profile $(CARGO_PROFILE) $(CARGO_FLAGS) \
	    --strip --quiet --out $(DIST)

release-check: setup ## Bill of materials, licences, known flaws, a wheel that comes out twice (RELEASE=--strict: nothing unchecked)
	$(BIN)/python -m scripts.release $(RELEASE)

man: setup ## The manual page privet(1) in target/man, made from the commands themselves
	$(BIN)/python -m sphinx --builder man --quiet --doctree-dir target/doctrees-man docs target/man

clean: ## Remove .venv, build outputs and caches
	rm -rf $(VENV) $(DIST) .browser target .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f python/privet/_native*.so
	find python tests scripts $(wildcard zoo) -name __pycache__ -type d -prune -exec rm -rf {} +

# Benchmarks. Peers live in environments of their own, which git is told to ignore from within.
PYTHON_CODE += benches
PEERS := .venv-spu
CONCRETE := .venv-concrete
BENCH ?= --quick
KERNELS ?=
SERVING ?=
LOAD ?=
STREAM ?=
.PHONY: bench bench-serve bench-load bench-kernels bench-stream bench-peers bench-concrete

bench: setup ## Measure Privet beside the installed peers (ten minutes; BENCH=--all for everything)
	$(BIN)/python -m benches.run $(BENCH)

bench-serve: setup ## Measure `privet serve` under a real workload, then simulate the paper's (half an hour; SERVING=--help)
	$(BIN)/python -m benches.serving $(SERVING)
	$(BIN)/privet simulate --sweep --report target/simulation

bench-load: setup ## Load `privet serve`: 100 clients, idle clients, peers that stall (40 minutes; LOAD=--help)
	$(BIN)/python -m benches.load $(LOAD)

bench-kernels: setup ## Measure every kernel beside what this machine allows (two minutes; KERNELS=bfv prints some)
	CRITERION_HOME=$(ROOT)/target/kernels RAYON_NUM_THREADS=1 \
	    $(CARGO) bench -p privet-kernels --bench kernels $(CARGO_FLAGS) -- $(if $(KERNELS),'peak|$(KERNELS)')
	$(BIN)/python -m benches.kernels $(if $(KERNELS),--print)

bench-stream: setup ## Suite stream: requests one by one and side by side (minutes; STREAM=--help)
	$(BIN)/python -m benches.stream $(STREAM)

bench-peers: $(PEERS)/.requirements ## Create .venv-spu with the peer SPU 0.9.5 (Python 3.11)
	@:

$(PEERS)/.requirements: benches/peers/spu-requirements.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) and "SPU 0.9.5 needs Python 3.11: make PYTHON=python3.11 bench-peers")'
	$(PYTHON) -m venv $(PEERS)
	@echo '*' > $(PEERS)/.gitignore
	$(PEERS)/bin/python -m pip install --disable-pip-version-check --quiet --only-binary :all: --require-hashes -r $<
	@touch $@

bench-concrete: $(CONCRETE)/.requirements ## Create .venv-concrete with the peer Concrete ML 1.9.0 (Python 3.11)
	@:

$(CONCRETE)/.requirements: benches/peers/concrete-requirements.txt
	$(PYTHON) -m venv $(CONCRETE)
	@echo '*' > $(CONCRETE)/.gitignore
	$(CONCRETE)/bin/python -m pip install --disable-pip-version-check --quiet --only-binary :all: --no-deps -r $<
	@touch $@

# The program of suite ckks, its client for browsers, and Go's script that runs that one, beside the interpreter of .venv.
# Nothing of the machine gets into the module, so that whoever builds it with the same Go gets the same bytes.
$(VENV)/.ckks: $(GO_SOURCES) | $(VENV)/.created
	@$(NEEDS_GO); $(GO_RUN) build -buildvcs=false -ldflags '-s -w -buildid=' -o ../$(BIN)/privet-ckks ./cmd/privet-ckks
	@$(NEEDS_GO); cd ckks && GOOS=js GOARCH=wasm $(GO_ENV) $(GO) build -buildvcs=false \
	    -ldflags '-s -w -buildid=' -o ../$(BIN)/privet-ckks.wasm ./cmd/privet-ckks-web
	@$(NEEDS_GO); cp "$$($(GO) env GOROOT)/lib/wasm/wasm_exec.js" $(BIN)/privet-ckks.js && touch $@

# Stamps: each is touched only after its step succeeded, so an interrupted setup is taken up where it broke off.

$(VENV)/.created:
	@sh scripts/require.sh "$(PYTHON)" "$(CARGO)"
	$(PYTHON) -m venv $(VENV)
	@touch $@

# Of ten thousand modules that come with the packages most are never imported; one that is, is compiled then.
$(VENV)/.requirements: requirements.txt | $(VENV)/.created
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-compile --only-binary :all: --require-hashes -r requirements.txt
	@touch $@

# PIP_NO_INDEX: all requirements are met by now, so that nothing unhashed can be fetched here. Python sources stay live.
$(VENV)/.native: $(VENV)/.requirements pyproject.toml $(RUST_SOURCES)
	@sh scripts/require.sh "$(PYTHON)" "$(CARGO)"
	env -u CONDA_PREFIX VIRTUAL_ENV="$(ROOT)/$(VENV)" PIP_NO_INDEX=1 PIP_QUIET=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
	    $(BIN)/maturin develop --profile $(CARGO_PROFILE) $(CARGO_FLAGS)
	@touch $@
	@echo 'Ready: $(BIN)/privet --help'
