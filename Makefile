# Everything runs in .venv, which these targets make. PYTHON has to be 3.11 or newer.
PYTHON ?= python3
BIN := .venv/bin
# The libraries below the arrays are kept to one thread: two threads beside a busy neighbour are slower than one.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# Where bytecode is not kept, every test that starts a process compiles the package again.
BYTECODE := PYTHONDONTWRITEBYTECODE=

# what has to hold for the guarantee to hold
PRIVACY_TESTS := tests/attacks tests/audit tests/mechanisms tests/plugins tests/privacy tests/papers \
	$(addprefix tests/methods/,nets/test_batches.py nets/test_clipped.py nets/test_sgd.py dpgm/test_components.py \
	mixtures/test_em.py mixtures/test_kmeans.py) \
	tests/data_ledger tests/search/test_tuning.py tests/cli/test_ledger.py

.PHONY: demo test test-slow test-report audit recorder lint house extras dist newcomer bench docs adult tables dependence images p3gm peers dpsynth paper-p3gm paper-dp-em paper-dpgm paper-dpmix papers-page papers-quick resolve clean help

help:
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

.venv/pyvenv.cfg:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Sfumato needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv .venv

# $(1): extras to install, with the versions that were tested together
.venv/.installed-%: .venv/pyvenv.cfg pyproject.toml constraints.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$*]'
	@touch $@

demo: .venv/.installed-demo  ## release a real table at epsilon = 1, score it, and write a page about it
	$(BIN)/sfumato demo --out demo --overwrite

test: lint .venv/.installed-test  ## lint, then the default tests (about 10 minutes on 2 cores)
	$(ONE_THREAD) $(BYTECODE) $(BIN)/python -m pytest -n 2 --dist worksteal -m 'not slow and not browser'

test-slow: .venv/.installed-test  ## the large statistical tests
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 --dist worksteal -m slow

test-report: .venv/.installed-test  ## the report and the studio in Chromium, where there is one
	$(ONE_THREAD) $(BIN)/python -m pytest -m browser tests/report tests/studio

audit: .venv/.installed-test  ## attacks on every mechanism and method, then bugs planted for them to find
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 -m 'audit or not (slow or browser)' $(PRIVACY_TESTS)
	$(ONE_THREAD) $(BIN)/python -m pytest -m audit tests/bugs
	$(MAKE) recorder

# its own metadata ask for older libraries than it needs: they come first, and it without its own
RECORDER ?= git+https://github.com/ObliviousAI/dp-recorder@85d189e
recorder:  ## pairs of whole fits, judged by a harness that others wrote, in an environment of its own
	$(PYTHON) -m venv .venv-recorder
	.venv-recorder/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]' tqdm matplotlib seaborn graphviz
	@if .venv-recorder/bin/pip install --quiet --disable-pip-version-check --no-deps '$(RECORDER)'; \
	then $(ONE_THREAD) .venv-recorder/bin/python -m pytest -m audit tests/foreign; \
	else echo 'Skipped: dp-recorder cannot be had from $(RECORDER). Set RECORDER to where it lies.'; fi

lint: .venv/.installed-lint .venv/.installed-test  ## ruff, pyright, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pyright --pythonpath $(BIN)/python

house: .venv/.installed-test  ## counts of the source beside their limits: lines, circles of imports, long signatures, names
	$(BIN)/python benchmarks/house.py --circles

bench: .venv/.installed-bench  ## speed and memory, as ratios against named peers
	$(ONE_THREAD) $(BIN)/python benchmarks/noise.py
	$(ONE_THREAD) $(BIN)/python benchmarks/accounting.py
	$(ONE_THREAD) $(BIN)/python benchmarks/large_table.py --rows 1000000
	$(ONE_THREAD) $(BIN)/python benchmarks/em.py
	$(ONE_THREAD) $(BIN)/python benchmarks/dpgm.py
	$(ONE_THREAD) $(BIN)/python benchmarks/mixing.py

adult: .venv/.installed-bench  ## the acceptance protocol on Adult: SFUMATO_DATA=folder of adult.parquet
	$(ONE_THREAD) $(BIN)/python benchmarks/adult.py

tables: .venv/.installed-bench  ## the same on tables of numeric columns, scored on training rows: SFUMATO_DATA=folder
	for table in credit esr isolet; do $(ONE_THREAD) $(BIN)/python benchmarks/tables.py $(SFUMATO_DATA) $$table --validate || exit 1; done

dependence: .venv/.installed-papers  ## correlations kept, and what eleven tables keep, scored on training rows: SFUMATO_DATA=folder; goes on where it stopped
	$(ONE_THREAD) $(BIN)/python benchmarks/dependence.py --out benchmarks/results/dependence/pairs.jsonl
	$(ONE_THREAD) $(BIN)/python benchmarks/dependence_tables.py $(SFUMATO_DATA) --validate --out benchmarks/results/dependence
	$(BIN)/python benchmarks/dependence_pictures.py benchmarks/results/dependence --validate --out benchmarks/results/dependence/tables.png

images: .venv/.installed-papers  ## the same on MNIST and Fashion-MNIST, scored on training images: SFUMATO_DATA=folder
	for images in mnist fashion_mnist; do for purpose in fidelity training; do \
	$(BIN)/python benchmarks/images.py $(SFUMATO_DATA) $$images --purpose $$purpose --validate || exit 1; done; done

paper-dp-em: .venv/.installed-papers  ## the figures of DP-EM (papers/dp_em): SFUMATO_DATA=folder
	$(ONE_THREAD) $(BIN)/python papers/dp_em/compositions.py --picture papers/dp_em/out/compositions.png
	$(ONE_THREAD) $(BIN)/python papers/dp_em/figure_1.py
	for figure in 2 3 4 5; do $(ONE_THREAD) $(BIN)/python papers/dp_em/figure_$$figure.py --data $(SFUMATO_DATA) || exit 1; done
	$(ONE_THREAD) $(BIN)/python papers/dp_em/faces.py --data $(SFUMATO_DATA)
	for iterations in 20 60; do $(ONE_THREAD) $(BIN)/python papers/dp_em/figure_4.py --data $(SFUMATO_DATA) --iterations $$iterations --epsilons 0.01 --places gowalla_nyc || exit 1; done
	for iterations in 20 60; do $(ONE_THREAD) $(BIN)/python papers/dp_em/figure_4.py --data $(SFUMATO_DATA) --iterations $$iterations --epsilons 0.01 --places gowalla_grid256 --splits 3 || exit 1; done
	$(ONE_THREAD) $(BIN)/python papers/dp_em/as_published.py --data $(SFUMATO_DATA)
	$(ONE_THREAD) $(BIN)/python papers/dp_em/as_published.py --data $(SFUMATO_DATA) --figure 2 --splits 2

paper-dpgm: .venv/.installed-papers  ## the figures of DPGM (papers/dpgm): SFUMATO_DATA=folder; goes on where it stopped
	$(ONE_THREAD) $(BIN)/python papers/dpgm/accounts.py
	for figure in figure_3 clipping figure_5; do $(ONE_THREAD) $(BIN)/python papers/dpgm/$$figure.py --data $(SFUMATO_DATA) || exit 1; done
	$(ONE_THREAD) $(BIN)/python papers/dpgm/figure_3.py --data $(SFUMATO_DATA) --printed --runs 5
	$(ONE_THREAD) $(BIN)/python papers/dpgm/figure_5.py --data $(SFUMATO_DATA) --epsilons 1 --methods "DPGM, two layers"
	$(ONE_THREAD) $(BIN)/python papers/dpgm/figure_5.py --data $(SFUMATO_DATA) --only bms --epsilons 1 --methods "DPGM, k = 5" "DPGM, k = 10" "DPGM, k = 40"
	$(ONE_THREAD) $(BIN)/python papers/dpgm/figure_4.py --data $(SFUMATO_DATA) --components vae "two layers" "no clusters" rbm --validate
	for images in mnist fashion_mnist; do $(ONE_THREAD) $(BIN)/python papers/dpgm/as_published.py --data $(SFUMATO_DATA) --images $$images || exit 1; done

paper-dpmix: .venv/.installed-papers  ## the figures and tables of DPMix (papers/dpmix): SFUMATO_DATA=folder
	$(ONE_THREAD) $(BIN)/python papers/dpmix/figure_3.py
	for network in discriminant linear; do for images in mnist fashion_mnist; do $(ONE_THREAD) $(BIN)/python papers/dpmix/tables.py --data $(SFUMATO_DATA) --images $$images --network $$network || exit 1; done; done
	$(ONE_THREAD) $(BIN)/python papers/dpmix/tables.py --data $(SFUMATO_DATA) --network cnn --cells published:inf:64 ours:10:64
	$(ONE_THREAD) $(BIN)/python papers/dpmix/table_1.py --data $(SFUMATO_DATA)
	$(ONE_THREAD) $(BIN)/python papers/dpmix/figure_1.py --data $(SFUMATO_DATA)
	$(ONE_THREAD) $(BIN)/python papers/dpmix/figure_2.py --data $(SFUMATO_DATA)
	$(ONE_THREAD) $(BIN)/python papers/dpmix/as_published.py --data $(SFUMATO_DATA)
	$(ONE_THREAD) $(BIN)/python papers/dpmix/as_published.py --data $(SFUMATO_DATA) --cells unit:10:64 unit:10:16 --epochs 10
	$(ONE_THREAD) $(BIN)/python papers/dpmix/as_published.py --data $(SFUMATO_DATA) --cells projection:20:50 projection:20:400 unit-projection:20:50 unit-projection:20:400 --epochs 1
	$(ONE_THREAD) $(BIN)/python papers/dpmix/as_published.py --data $(SFUMATO_DATA) --images cifar10 --cells projection:30:50 projection:30:400 unit-projection:30:50 unit-projection:30:400 --epochs 1
	$(ONE_THREAD) $(BIN)/python papers/dpmix/table_1.py --data $(SFUMATO_DATA) --images cifar10
	$(ONE_THREAD) $(BIN)/python papers/dpmix/as_published.py --data $(SFUMATO_DATA) --denoise --epochs 5 --cells unit:20:64 unit:10:64
	$(ONE_THREAD) $(BIN)/python papers/dpmix/as_published.py --data $(SFUMATO_DATA) --images cifar10 --denoise --epochs 3 --cells unit:30:128 unit:20:128
	$(ONE_THREAD) $(BIN)/python papers/dpmix/as_published.py --data $(SFUMATO_DATA) --images cifar10 --epochs 3 --cells unit:30:128 unit:20:128
	$(ONE_THREAD) $(BIN)/python papers/dpmix/network.py --data $(SFUMATO_DATA)

# Peers need older libraries than ours. torch is named, so that its CPU build is taken where one is offered.
.peers/smartnoise/bin/python:
	$(PYTHON) -m venv .peers/smartnoise
	.peers/smartnoise/bin/pip install --quiet --disable-pip-version-check torch==2.13.0 smartnoise-synth==1.0.8 packaging

.peers/dpmm/bin/python:
	$(PYTHON) -m venv .peers/dpmm
	.peers/dpmm/bin/pip install --quiet --disable-pip-version-check dpmm==0.1.9

# dpsynth and its mbi are in no package index: Python 3.12, and GitHub at the commits that were compared.
DPSYNTH := git+https://github.com/ryan112358/mbi.git@361705d7f05f8c0ac4d5b3640e688eb4f692346e \
	git+https://github.com/google/dpsynth.git@cf8075f319b96c2e009e4ea6bb55378faccbbc80
.peers/dpsynth/bin/python:
	@command -v python3.12 >/dev/null || { echo "dpsynth is left out: it needs Python 3.12, and none is named python3.12."; exit 1; }
	python3.12 -m venv .peers/dpsynth
	.peers/dpsynth/bin/pip install --quiet --disable-pip-version-check absl-py attrs chex dp-accounting==0.6.0 etils \
		importlib_resources 'jax[cpu]==0.11.0' more-itertools networkx numpy optax pandas 'pydantic>=2' pyyaml scipy tqdm && \
	.peers/dpsynth/bin/pip install --quiet --disable-pip-version-check --no-deps $(DPSYNTH) || \
		{ rm -rf .peers/dpsynth; echo "dpsynth is left out: its packages could not be had."; exit 1; }

dpsynth: .peers/dpsynth/bin/python  ## environment of dpsynth's SWIFT and AIM, in .peers, for benchmarks/swift_aim.py

peers: .peers/smartnoise/bin/python .peers/dpmm/bin/python  ## environments of MST, AIM, MWEM, DP-CTGAN and PrivBayes, in .peers (2 GB)

paper-p3gm: .venv/.installed-papers peers  ## the tables and figures of P3GM (papers/p3gm): SFUMATO_DATA=folder; goes on where it stopped
	$(ONE_THREAD) $(BIN)/python papers/p3gm/figure_9.py
	$(ONE_THREAD) $(BIN)/python papers/p3gm/tables.py
	$(ONE_THREAD) $(BIN)/python papers/p3gm/figure_2.py
	$(ONE_THREAD) $(BIN)/python papers/p3gm/figure_2.py --images fashion_mnist
	for figure in 4 5 6 7 8; do $(ONE_THREAD) $(BIN)/python papers/p3gm/figure_$$figure.py || exit 1; done
	$(ONE_THREAD) $(BIN)/python papers/p3gm/figure_8.py --of mnist
	$(ONE_THREAD) $(BIN)/python papers/p3gm/as_published.py
	$(ONE_THREAD) $(BIN)/python papers/p3gm/as_published.py --table esr --forms released
	$(ONE_THREAD) $(BIN)/python papers/p3gm/scaled.py --runs 2 --methods best released
	$(ONE_THREAD) $(BIN)/python papers/p3gm/autoregressive.py --runs 2
	$(ONE_THREAD) $(BIN)/python papers/p3gm/colour.py --methods max-entropy --epochs 2
	$(ONE_THREAD) $(BIN)/python benchmarks/p3gm_curves.py $(SFUMATO_DATA) --out papers/p3gm/out/curves.json --picture papers/p3gm/out/figure_7_losses.png
	$(ONE_THREAD) $(BIN)/python benchmarks/p3gm_shares.py $(SFUMATO_DATA) --out papers/p3gm/out/shares.json --picture papers/p3gm/out/figure_8.png
	$(BIN)/python papers/p3gm/expected.py
	$(BIN)/python papers/page.py

papers-quick: .venv/.installed-papers  ## rerun the cheap cells of docs/papers.md and compare (under 20 minutes): SFUMATO_DATA=folder
	$(ONE_THREAD) $(BIN)/python papers/quick.py --data $(SFUMATO_DATA)

papers-page: .venv/.installed-papers  ## docs/papers.md from the expected.json files
	$(BIN)/python papers/page.py

p3gm: .venv/.installed-papers  ## P3GM on the data sets of its paper: SFUMATO_DATA=folder; goes on where it stopped
	$(ONE_THREAD) $(BIN)/python benchmarks/p3gm.py $(SFUMATO_DATA) --validate --out p3gm.json

.resolve/bin/python:
	$(PYTHON) -m venv .resolve
	.resolve/bin/pip install --quiet --disable-pip-version-check uv

resolve: .resolve/bin/python  ## whether wheels of all requirements are there, for each system and each Python
	.resolve/bin/python .ci/resolve.py

extras: .venv/pyvenv.cfg  ## each extra alone, in a clean environment, does what it promises: minutes, and the package index
	$(BIN)/python .ci/extras.py

newcomer: .venv/pyvenv.cfg  ## what a data holder, an analyst, a reviewer and an engineer do first, in a clean environment
	$(BIN)/python .ci/newcomer.py

dist: .venv/pyvenv.cfg  ## archive and wheel, checked and installed in clean environments, in dist: minutes, and the package index
	$(BIN)/python .ci/dist.py

docs: .venv/.installed-docs  ## the documentation as HTML, in docs/_build: tutorials are run, links checked
	$(ONE_THREAD) $(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build
	$(BIN)/python .ci/pages.py docs/_build

clean:
	rm -rf .venv demo docs/_build docs/jupyter_execute
