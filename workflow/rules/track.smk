"""Send the finished study to MLflow; while it runs, a process follows its trainings."""

import os


rule track:
    input:
        scores=rules.collect.output.scores,
        summary=rules.summarise.output.summary,
        report=[*TABLES, *FIGURES],
    output:
        RESULTS.tracking,
    log:
        FILES.log("track"),
    benchmark:
        RESULTS.benchmark("track")
    threads: 1
    params:
        results=subpath(output[0], parent=True),
        reports=lambda wildcards, input: Path(input.report[0]).parent,
        models="--register-models" if config.get("register_models") else "",
    shell:
        "python -m mcgrpo.tracking {params.results:q} --reports {params.reports:q} {params.models} --output {output:q} "
        "> {log:q} 2>&1"


if os.environ.get(tracking.URI):
    CHECKS += rules.track.output
