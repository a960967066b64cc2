"""Completions of each run on each benchmark, and their grades: a regrade never generates."""


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
        gpu=min(1, config.get("gpus", 0)),
    params:
        prompt=lambda wildcards: run_of(wildcards).prompt,
        settings=lambda wildcards: json.dumps(evaluation_settings(wildcards)),
        seed=lambda wildcards: run_of(wildcards).seed,
        code=fingerprint("mcgrpo.generate"),
    shell:
        "python -m mcgrpo.preload mcgrpo.generate --model {input.model} --data {input.data} --prompt {params.prompt} "
        "--settings {params.settings:q} --seed {params.seed} --output {output} --threads {threads} > {log} 2>&1"


rule grade:
    input:
        f"{RESULTS}/completions/{{run}}/{{benchmark}}.jsonl",
    output:
        f"{RESULTS}/grades/{{run}}/{{benchmark}}{{protocol}}.jsonl",
    log:
        f"{LOGS}/grade/{{run}}/{{benchmark}}{{protocol}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/grade/{{run}}/{{benchmark}}{{protocol}}.tsv"
    conda:
        "../../envs/workflow.yaml"
    threads: 1
    params:
        task=lambda wildcards: config["datasets"][wildcards.benchmark]["task"],
        protocol=lambda wildcards: "released" if wildcards.protocol else "paper",
        code=fingerprint("mcgrpo.grade"),
    shell:
        "python -m mcgrpo.grade --task {params.task} --input {input} --output {output} "
        "--workers {threads} --protocol {params.protocol} > {log} 2>&1"
