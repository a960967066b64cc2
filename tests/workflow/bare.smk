# As many rules a run as a study has, and none of ours: what planning costs Snakemake itself.
RUNS = range(config["runs"])


rule collect:
    input:
        expand("grades/{run}", run=RUNS),
    output:
        "scores",
    shell:
        "collect --input {input} --output {output}"


rule train:
    output:
        "runs/{run}",
    log:
        "logs/train/{run}",
    benchmark:
        "benchmarks/train/{run}"
    shell:
        "train --output {output} > {log}"


rule generate:
    input:
        "runs/{run}",
    output:
        "completions/{run}",
    log:
        "logs/generate/{run}",
    benchmark:
        "benchmarks/generate/{run}"
    shell:
        "generate --input {input} --output {output} > {log}"


rule grade:
    input:
        "completions/{run}",
    output:
        "grades/{run}",
    log:
        "logs/grade/{run}",
    benchmark:
        "benchmarks/grade/{run}"
    shell:
        "grade --input {input} --output {output} > {log}"
