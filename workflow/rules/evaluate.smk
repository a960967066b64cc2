"""Completions of each run on its benchmarks, their grades, and sign-flip rates."""

GENERATE = (
    "python -m mcgrpo.launch --gpus {params.gpus} mcgrpo.generate --model {input.model:q} --sums {input.sums:q} "
    "--data {input.data:q} {params.options} --code {params.code} --output {output:q} --threads {threads} > {log:q} 2>&1"
)


rule generate:
    input:
        unpack(final_model),
        data=FILES.data("{benchmark}"),
    output:
        # Not removed before the job, which keeps what is as it would draw it (`mcgrpo.generate.origin`).
        update(RESULTS.completions("{run}", "{benchmark}")),
    log:
        FILES.log("generate", "{run}/{benchmark}"),
    benchmark:
        RESULTS.benchmark("generate", "{run}/{benchmark}")
    wildcard_constraints:
        run=f"(?!{any_of(sum(TOGETHER.values(), []))}/){RUN}" if TOGETHER else RUN,
    priority: evaluation_priority
    threads: 1
    resources:
        gpu=GENERATION_GPUS,
    params:
        options=lambda wildcards: evaluation_options(wildcards, [wildcards.benchmark]),
        gpus=GENERATION_GPUS,
        code=lambda wildcards: fingerprint("mcgrpo.generate", run_of(wildcards).prompt),
    shell:
        GENERATE


# All outputs of a rule have the same wildcards: so each set of benchmarks has a rule, for its runs.
for place, (several, its_runs) in enumerate(TOGETHER.items(), 1):

    rule:
        name:
            f"generate_together_{place}"
        input:
            unpack(final_model),
            data=[FILES.data(benchmark) for benchmark in several],
        output:
            [update(RESULTS.completions("{run}", benchmark)) for benchmark in several],
        log:
            FILES.log("generate", "{run}"),
        benchmark:
            RESULTS.benchmark("generate", "{run}")
        wildcard_constraints:
            run=any_of(its_runs),
        priority: evaluation_priority
        threads: 1
        resources:
            gpu=GENERATION_GPUS,
        params:
            options=partial(evaluation_options, benchmarks=several),
            gpus=GENERATION_GPUS,
            code=lambda wildcards: fingerprint("mcgrpo.generate", run_of(wildcards).prompt),
        shell:
            GENERATE


rule grade:
    input:
        RESULTS.completions("{run}", "{benchmark}"),
    output:
        RESULTS.grades("{run}", "{benchmark}"),
    log:
        FILES.log("grade", "{run}/{benchmark}"),
    benchmark:
        RESULTS.benchmark("grade", "{run}/{benchmark}")
    threads: 1
    params:
        task=lambda wildcards: task_of(wildcards.benchmark),
        protocols=plan.grading(config),
        code=lambda wildcards: fingerprint("mcgrpo.grade", task_of(wildcards.benchmark)),
    shell:
        "python -m mcgrpo.grade --task {params.task:q} --input {input:q} --output {output:q} "
        "--workers {threads} --protocol {params.protocols:q} > {log:q} 2>&1"


use rule generate as rollouts with:
    output:
        RESULTS.rollouts("{run}", "{benchmark}"),
    log:
        FILES.log("rollouts", "{run}/{benchmark}"),
    benchmark:
        RESULTS.benchmark("rollouts", "{run}/{benchmark}")
    wildcard_constraints:
        run=RUN,
    params:
        options=lambda wildcards: generation_options(wildcards, (settings.rollout_settings, FLIPS[wildcards.run])),


use rule grade as grade_rollouts with:
    input:
        RESULTS.rollouts("{run}", "{benchmark}"),
    output:
        RESULTS.rollout_grades("{run}", "{benchmark}"),
    log:
        FILES.log("grade_rollouts", "{run}/{benchmark}"),
    benchmark:
        RESULTS.benchmark("grade_rollouts", "{run}/{benchmark}")
    params:
        protocols=["paper"],


rule sign_flips:
    input:
        RESULTS.rollout_grades("{run}", "{benchmark}"),
    output:
        RESULTS.flips("{run}", "{benchmark}"),
    log:
        FILES.log("sign_flips", "{run}/{benchmark}"),
    benchmark:
        RESULTS.benchmark("sign_flips", "{run}/{benchmark}")
    threads: 1
    params:
        k=lambda wildcards: FLIPS[wildcards.run].subset_sizes,
        code=fingerprint("mcgrpo.analyse.sign_flips"),
    shell:
        "python -m mcgrpo.analyse.sign_flips --grades {input:q} --k {params.k} --output {output:q} > {log:q} 2>&1"
