"""Grades and metrics to tidy tables."""


rule plan:
    output:
        RESULTS.plan,
    log:
        FILES.log("plan"),
    benchmark:
        RESULTS.benchmark("plan")
    threads: 1
    params:
        config=lambda wildcards: json.dumps(plan.plan_part(config)),
        code=fingerprint("mcgrpo.study.plan"),
    shell:
        "python -m mcgrpo.study.plan --config {params.config:q} --output {output:q} > {log:q} 2>&1"


rule overlap:
    input:
        plan=rules.plan.output,
        data=map(FILES.data, DATASETS),
    output:
        RESULTS.overlap,
    log:
        FILES.log("overlap"),
    benchmark:
        RESULTS.benchmark("overlap")
    threads: 1
    params:
        data=lambda wildcards, input: Path(input.data[0]).parent,
        code=fingerprint("mcgrpo.data.overlap"),
    shell:
        "python -m mcgrpo.data.overlap --plan {input.plan:q} --data {params.data:q} --output {output:q} > {log:q} 2>&1"


rule collect:
    input:
        plan=RESULTS.plan,  # not `rules.plan.output`: with it, Snakemake hashes the whole list for each of its files
        results=[] if PARTIAL else MEASURED,
    output:
        scores=RESULTS.scores,
        curves=RESULTS.curves,
    log:
        FILES.log("collect"),
    benchmark:
        RESULTS.benchmark("collect")
    threads: 8  # or as many as there are
    params:
        results=subpath(output.scores, parent=True),
        partial="--partial" if PARTIAL else "",
        mtimes=lambda wildcards: mtimes(MEASURED) if PARTIAL else [],
        code=fingerprint("mcgrpo.analyse.collect"),
    shell:
        "python -m mcgrpo.launch mcgrpo.analyse.collect --results {params.results:q} {params.partial} > {log:q} 2>&1"


rule summarise:
    input:
        plan=rules.plan.output,
        scores=rules.collect.output.scores,
    output:
        summary=RESULTS.summary,
    log:
        FILES.log("summarise"),
    benchmark:
        RESULTS.benchmark("summarise")
    threads: 1
    params:
        results=subpath(output.summary, parent=True),
        sums=sums(shipped.PUBLISHED),
        code=fingerprint("mcgrpo.analyse.summarise"),
    shell:
        "python -m mcgrpo.launch mcgrpo.analyse.summarise --results {params.results:q} > {log:q} 2>&1"


rule comparisons:
    input:
        plan=rules.plan.output,
        scores=rules.collect.output.scores,
    output:
        RESULTS.comparisons,
    log:
        FILES.log("comparisons"),
    benchmark:
        RESULTS.benchmark("comparisons")
    threads: 1
    params:
        results=subpath(output[0], parent=True),
        sums=sums(shipped.CLAIMS, shipped.CLAIMS_SCHEMA, shipped.PUBLISHED),
        code=fingerprint("mcgrpo.analyse.comparisons"),
    shell:
        "python -m mcgrpo.launch mcgrpo.analyse.comparisons --results {params.results:q} > {log:q} 2>&1"


rule signals:
    input:
        plan=rules.plan.output,
        summary=rules.summarise.output.summary,
        comparisons=rules.comparisons.output,
        rollouts=[] if PARTIAL else FLIP_GRADES,
    output:
        signals=RESULTS.signals,
        curves=RESULTS.signal_curves,
    log:
        FILES.log("signals"),
    benchmark:
        RESULTS.benchmark("signals")
    threads: 1
    params:
        results=subpath(output.signals, parent=True),
        mtimes=lambda wildcards: mtimes(FLIP_GRADES) if PARTIAL else [],
        code=fingerprint("mcgrpo.analyse.signals"),
    shell:
        "python -m mcgrpo.launch mcgrpo.analyse.signals --results {params.results:q} > {log:q} 2>&1"


CHECKS = [*map(FILES.audit, DATASETS), *rules.overlap.output]
