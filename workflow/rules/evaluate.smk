"""Completions of each run on its benchmarks, their grades, and sign-flip rates: a regrade never generates."""


rule generate:
    input:
        model=final_model,
        data=f"resources/data/{config['study']}/{{benchmark}}.jsonl",
    output:
        f"{RESULTS}/completions/{{run}}/{{benchmark}}.jsonl",
    log:
        f"{LOGS}/generate/{{run}}/{{benchmark}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/generate/{{run}}/{{benchmark}}.tsv"
    conda:
        "../../envs/workflow.yaml"
    threads: 1
    resources:
        gpu=GENERATION_GPUS,
    params:
        prompt=lambda wildcards: run_of(wildcards).prompt,
        settings=lambda wildcards: json.dumps(evaluation_settings(wildcards)),
        seed=lambda wildcards: run_of(wildcards).seed,
        sealed=lambda wildcards: "" if run_of(wildcards).method == UNTRAINED else "--sealed",
        gpus=GENERATION_GPUS,
        code=fingerprint("mcgrpo.generate"),
    shell:
        "python -m mcgrpo.launch --gpus {params.gpus} mcgrpo.generate --model {input.model:q} --data {input.data:q} "
        "--prompt {params.prompt:q} --settings {params.settings:q} --seed {params.seed} {params.sealed} --output {output:q} "
        "--threads {threads} > {log:q} 2>&1"


rule grade:
    input:
        f"{RESULTS}/completions/{{run}}/{{benchmark}}.jsonl",
    output:
        [f"{RESULTS}/grades/{{run}}/{{benchmark}}{PROTOCOL_SUFFIXES[protocol]}.jsonl" for protocol in GRADING],
    log:
        f"{LOGS}/grade/{{run}}/{{benchmark}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/grade/{{run}}/{{benchmark}}.tsv"
    conda:
        "../../envs/workflow.yaml"
    threads: 1
    params:
        task=lambda wildcards: config["datasets"][wildcards.benchmark]["task"],
        protocols=GRADING,
        code=fingerprint("mcgrpo.grade"),
    shell:
        "python -m mcgrpo.grade --task {params.task:q} --input {input:q} --output {output:q} "
        "--workers {threads} --protocol {params.protocols:q} > {log:q} 2>&1"


use rule generate as rollouts with:
    output:
        f"{RESULTS}/rollouts/{{run}}/{{benchmark}}.jsonl",
    log:
        f"{LOGS}/rollouts/{{run}}/{{benchmark}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/rollouts/{{run}}/{{benchmark}}.tsv"
    params:
        prompt=lambda wildcards: run_of(wildcards).prompt,
        settings=lambda wildcards: json.dumps(rollout_settings(wildcards)),
        seed=lambda wildcards: run_of(wildcards).seed,
        sealed=lambda wildcards: "" if run_of(wildcards).method == UNTRAINED else "--sealed",
        gpus=GENERATION_GPUS,
        code=fingerprint("mcgrpo.generate"),


use rule grade as grade_rollouts with:
    input:
        f"{RESULTS}/rollouts/{{run}}/{{benchmark}}.jsonl",
    output:
        f"{RESULTS}/rollout-grades/{{run}}/{{benchmark}}.jsonl",
    log:
        f"{LOGS}/grade_rollouts/{{run}}/{{benchmark}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/grade_rollouts/{{run}}/{{benchmark}}.tsv"
    params:
        task=lambda wildcards: config["datasets"][wildcards.benchmark]["task"],
        protocols=["paper"],
        code=fingerprint("mcgrpo.grade"),


rule sign_flips:
    input:
        f"{RESULTS}/rollout-grades/{{run}}/{{benchmark}}.jsonl",
    output:
        f"{RESULTS}/flips/{{run}}/{{benchmark}}.jsonl",
    log:
        f"{LOGS}/sign_flips/{{run}}/{{benchmark}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/sign_flips/{{run}}/{{benchmark}}.tsv"
    conda:
        "../../envs/workflow.yaml"
    threads: 1
    params:
        k=lambda wildcards: FLIPS[wildcards.run]["subset_sizes"],
        subsamples=lambda wildcards: FLIPS[wildcards.run]["subsamples"],
        code=fingerprint("mcgrpo.analyse.sign_flips"),
    shell:
        "python -m mcgrpo.analyse.sign_flips --grades {input:q} --k {params.k} --subsamples {params.subsamples} --seed 0 "
        "--output {output:q} > {log:q} 2>&1"
