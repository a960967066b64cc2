"""Data sets and models, each built or downloaded once."""


rule dataset:
    output:
        data=FILES.data("{dataset}"),
        source=FILES.data_source("{dataset}"),
    log:
        FILES.log("dataset", "{dataset}"),
    benchmark:
        RESULTS.benchmark("dataset", "{dataset}")
    threads: 1
    params:
        spec=lambda wildcards: as_json(config["datasets"][wildcards.dataset]),
        files=lambda wildcards: sums(*filter(Path.is_file, settings.local_files(config["datasets"][wildcards.dataset]))),
        code=fingerprint("mcgrpo.data"),
    shell:
        "python -m mcgrpo.data --spec {params.spec:q} --output {output.data:q} > {log:q} 2>&1"


rule audit:
    input:
        data=rules.dataset.output.data,
        source=rules.dataset.output.source,
    output:
        FILES.audit("{dataset}"),
    log:
        FILES.log("audit", "{dataset}"),
    benchmark:
        RESULTS.benchmark("audit", "{dataset}")
    threads: 1
    params:
        task=lambda wildcards: task_of(wildcards.dataset),
        code=lambda wildcards: fingerprint("mcgrpo.data.audit", task_of(wildcards.dataset)),
    shell:
        "python -m mcgrpo.data.audit --task {params.task:q} --data {input.data:q} --source {input.source:q} "
        "--workers {threads} --output {output:q} > {log:q} 2>&1"


rule model:
    output:
        folder=directory(FILES.model("{model}")),
        sums=FILES.sums(FILES.model("{model}")),
    log:
        FILES.log("model", "{model}"),
    benchmark:
        RESULTS.benchmark("model", "{model}")
    threads: 1
    params:
        spec=lambda wildcards: as_json(
            {key: value for key, value in config["models"][wildcards.model].items() if key != "warm_start"}
        ),
        # A model of the hub does not depend on how toys are built.
        code=lambda wildcards: fingerprint(
            "mcgrpo.data.fetch" if "hub" in config["models"][wildcards.model] else "mcgrpo.data.models"
        ),
    shell:
        "python -m mcgrpo.launch mcgrpo.data.models --spec {params.spec:q} --output {output.folder:q} > {log:q} 2>&1"


# Of a model that is used where it lies: what it was when it was first read.
rule local_model:
    input:
        lambda wildcards: sorted(map(str, filter(Path.is_file, local_folder(wildcards.model).glob("*")))),
    output:
        FILES.local_sums("{model}"),
    log:
        FILES.log("local_model", "{model}"),
    benchmark:
        RESULTS.benchmark("local_model", "{model}")
    threads: 1
    params:
        folder=lambda wildcards: local_folder(wildcards.model),
        code=fingerprint("mcgrpo.data.local_model"),
    shell:
        "python -m mcgrpo.data.local_model --folder {params.folder:q} --output {output:q} > {log:q} 2>&1"


rule warm_start:
    input:
        unpack(lambda wildcards: initial_model(wildcards.model, warm=False)),
        data=lambda wildcards: map(FILES.data, config["models"][wildcards.model]["warm_start"]["datasets"]),
    output:
        folder=directory(FILES.warm_start("{model}")),
        sums=FILES.sums(FILES.warm_start("{model}")),
    log:
        FILES.log("warm_start", "{model}"),
    benchmark:
        RESULTS.benchmark("warm_start", "{model}")
    threads: 1
    resources:
        gpu=int(GPUS > 0),
    params:
        spec=lambda wildcards: as_json(settings.warm_start(config, wildcards.model)),
        code=lambda wildcards: fingerprint(
            "mcgrpo.data.warm_start", *itemgetter("task", "prompt")(settings.warm_start(config, wildcards.model))
        ),
    shell:
        "python -m mcgrpo.launch --gpus {resources.gpu} mcgrpo.data.warm_start --spec {params.spec:q} "
        "--model {input.model:q} --sums {input.sums:q} --data {input.data:q} --output {output.folder:q} "
        "--threads {threads} > {log:q} 2>&1"
