"""Tables and figures, from summary.csv and curves.csv alone."""

TABLES = expand(
    "{reports}/{table}",
    reports=REPORTS,
    table=["tables.tex", "tables.md", "tables.csv", "headline.md", "timings.tex", "timings.md"],
)
FIGURES = expand(
    "{reports}/figures/{figure}.{suffix}",
    reports=REPORTS,
    figure=study.figures(config),
    suffix=["pdf", "png"],
)


rule tables:
    input:
        rules.summarise.output,
    output:
        TABLES,
    log:
        f"{LOGS}/tables.log",
    benchmark:
        f"{RESULTS}/benchmarks/tables.tsv"
    conda:
        "../../envs/workflow.yaml"
    threads: 1
    params:
        folder=subpath(output[0], parent=True),
        title=config.get("title", config["study"]),
        code=fingerprint("mcgrpo.report.tables"),
    shell:
        "python -m mcgrpo.report.tables --summary {input} --output {params.folder} --title {params.title:q} > {log} 2>&1"


rule figure:
    input:
        summary=rules.summarise.output,
        curves=rules.collect.output.curves,
    output:
        pdf=f"{REPORTS}/figures/{{figure}}.pdf",
        png=f"{REPORTS}/figures/{{figure}}.png",
    log:
        f"{LOGS}/figure/{{figure}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/figure/{{figure}}.tsv"
    conda:
        "../../envs/workflow.yaml"
    threads: 1
    params:
        stem=subpath(output.pdf, strip_suffix=".pdf"),
        code=fingerprint("mcgrpo.report.figures"),
    shell:
        "python -m mcgrpo.report.figures {wildcards.figure} --summary {input.summary} --curves {input.curves} "
        "--output {params.stem} > {log} 2>&1"
