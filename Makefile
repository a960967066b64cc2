# make mini: the study on toy models, from nothing to LaTeX. make test: every test. `make help` lists the rest.
PYTHON ?= python3
export PATH := $(CURDIR)/.venv/bin:$(PATH)
# Jobs of a killed study end within seconds and hold this lock till then; --nolock, as it takes the place of Snakemake's.
STUDY = flock .study.lock snakemake --nolock --cores all --quiet rules

.PHONY: help setup mini quick smoke readme test bench-grading lint format lock clean
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /: /'

setup: .venv/ready ## create .venv and install
.venv/ready: pyproject.toml envs/cpu.txt
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet -r envs/cpu.txt
	.venv/bin/pip install --quiet --no-deps --editable .
	@touch $@

mini: .venv/ready ## the study on toy models: tables and figures in reports/mini
	@$(STUDY) --configfile config/mini.yaml
	@python -m mcgrpo.made reports/mini

quick: .venv/ready ## the same way with next to no training, in a minute
	@$(STUDY) --configfile config/mini.yaml config/cut-down.yaml
	@python -m mcgrpo.made reports/quick

smoke: .venv/ready ## text in GSM8K's schema through every stage, with a tiny random model
	@$(STUDY) --configfile config/smoke.yaml
	@python -m mcgrpo.made reports/smoke

readme: mini ## put the mini study's table and figure into README.md
	@python workflow/scripts/readme.py

test: .venv/ready ## every test
	pytest --numprocesses 2 --dist loadfile

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
