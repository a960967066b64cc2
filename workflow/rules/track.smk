"""Log the finished study to MLflow. If that fails, it is said, and the study is finished nevertheless."""


rule track:
    input:
        scores=rules.collect.output.scores,
        summary=rules.summarise.output.summary,
        comparisons=rules.comparisons.output,
        report=REPORT,
    output:
        touch(RESULTS.tracked),
    log:
        FILES.log("track"),
    benchmark:
        RESULTS.benchmark("track")
    threads: 1
    params:
        results=subpath(output[0], parent=True),
        reports=lambda wildcards, input: Path(input.report[0]).parent,
    shell:
        "python -m mcgrpo.tracking --results {params.results:q} --reports {params.reports:q} > {log:q} 2>&1 "
        "|| {{ tail -n 1 {log:q} >&2; echo 'Later: mcgrpo track STUDY.yaml' >&2; }}"


if os.environ.get(tracking.URI):
    CHECKS += rules.track.output
