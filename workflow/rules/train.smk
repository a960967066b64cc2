"""One training job for each run."""


# How often it is saved and which rollouts are written down reach a job by its environment (mcgrpo/launch/environment.py):
# a change of them reruns nothing.
rule train:
    input:
        unpack(lambda wildcards: initial_model(run_of(wildcards).model)),
        data=lambda wildcards: FILES.data(run_of(wildcards).dataset),
        test=selection_data,
    output:
        run=directory(RESULTS.run("{run}")),
        weights=weights_output(RESULTS.model("{run}")),
        sums=RESULTS.model_sums("{run}"),
    log:
        FILES.log("train", "{run}"),
    benchmark:
        RESULTS.benchmark("train", "{run}")
    priority: training_priority
    threads: 1
    resources:
        gpu=GPUS,
    params:
        run=lambda wildcards: as_json(vars(run_of(wildcards))),
        unfinished=str(RESULTS.unfinished("{run}")),
        gpus=GPUS,  # not resources.gpu, which Snakemake lowers to the available number
        code=lambda wildcards: fingerprint(
            "mcgrpo.train", *attrgetter("estimator", "task", "prompt")(run_of(wildcards))
        ),
    shell:
        "python -m mcgrpo.launch --gpus {params.gpus} --processes {params.gpus} "
        "mcgrpo.train --run {params.run:q} --model {input.model:q} --sums {input.sums:q} --data {input.data:q} "
        "--test {input.test:q} --output {output.run:q} --weights {output.weights:q} --unfinished {params.unfinished:q} "
        "--threads {threads} --gpus {params.gpus} --code {params.code} > {log:q} 2>&1"
