"""Tables, figures, verdicts, the PDF and the HTML page, from the CSV files of analyse.smk."""

# The figures that the results allow.
DRAWN = plan.figures(config, PLANNED)
TABLES = expand("{reports}/{table}", reports=REPORTS, table=catalogue.TABLES)
SIGNAL = expand("{reports}/{table}", reports=REPORTS, table=catalogue.SIGNAL)
CLAIMS = expand("{reports}/{table}", reports=REPORTS, table=catalogue.CLAIMS)
FIGURES = expand(
    "{reports}/figures/{figure}.{suffix}",
    reports=REPORTS,
    figure=DRAWN,
    suffix=["pdf", "png"],
)
# Without LaTeX everything else is still made.
DOCUMENT = [f"{REPORTS}/reproduction.pdf"] if shutil.which("latexmk") else []
PAGE = f"{REPORTS}/report.html"
REPORT = [*TABLES, *SIGNAL, *CLAIMS, *FIGURES, *DOCUMENT, PAGE]
# File, caption, category and labels of what `snakemake --report` shows.
SHOWN = [
    (PAGE, "page", "Study report", {"document": "HTML"}),
    *((path, "document", "Study report", {"document": "PDF"}) for path in DOCUMENT),
    (f"{REPORTS}/tables.csv", "tables", "Tables", {"table": "Accuracy"}),
    (f"{REPORTS}/claims.csv", "claims", "Tables", {"table": "Claims"}),
    *((f"{REPORTS}/figures/{name}.png", name, "Figures", {"figure": name}) for name in DRAWN),
]
# Captions are relative to the Snakefile of rule `all`, which takes these files.
FEATURED = [report(path, f"report/{name}.rst", category, labels=labels) for path, name, category, labels in SHOWN]


rule tables:
    input:
        plan=rules.plan.output,
        summary=rules.summarise.output.summary,
        comparisons=rules.comparisons.output,
        signals=rules.signals.output.signals,
    output:
        TABLES,
        SIGNAL,
    log:
        FILES.log("tables"),
    benchmark:
        RESULTS.benchmark("tables")
    threads: 1
    params:
        results=subpath(input.summary, parent=True),
        folder=subpath(output[0], parent=True),
        title=lambda wildcards: plan.title(config),  # a function: braces in a plain parameter are wildcards
        code=fingerprint("mcgrpo.report.tables"),
    shell:
        "python -m mcgrpo.launch mcgrpo.report.tables --results {params.results:q} --output {params.folder:q} "
        "--title {params.title:q} > {log:q} 2>&1"


rule claims:
    input:
        comparisons=rules.comparisons.output,
    output:
        CLAIMS,
    log:
        FILES.log("claims"),
    benchmark:
        RESULTS.benchmark("claims")
    threads: 1
    params:
        results=subpath(input[0], parent=True),
        folder=subpath(output[0], parent=True),
        title=lambda wildcards: plan.title(config),
        sums=sums(shipped.CLAIMS, shipped.CLAIMS_SCHEMA, shipped.PUBLISHED),
        code=fingerprint("mcgrpo.report.claims"),
    shell:
        "python -m mcgrpo.launch mcgrpo.report.claims --results {params.results:q} --output {params.folder:q} "
        "--title {params.title:q} > {log:q} 2>&1"


rule figure:
    input:
        plan=rules.plan.output,
        summary=rules.summarise.output.summary,
        comparisons=rules.comparisons.output,
        curves=rules.collect.output.curves,
        signal_curves=rules.signals.output.curves,
    output:
        pdf=f"{REPORTS}/figures/{{figure}}.pdf",
        png=f"{REPORTS}/figures/{{figure}}.png",
    log:
        FILES.log("figure", "{figure}"),
    benchmark:
        RESULTS.benchmark("figure", "{figure}")
    threads: 1
    params:
        results=subpath(input.summary, parent=True),
        stem=subpath(output.pdf, strip_suffix=".pdf"),
        code=fingerprint("mcgrpo.report.figures"),
    shell:
        "python -m mcgrpo.launch mcgrpo.report.figures "
        "{wildcards.figure} --results {params.results:q} --output {params.stem:q} > {log:q} 2>&1"


rule reproduction:
    input:
        TABLES,
        SIGNAL,
        CLAIMS,
        FIGURES,
    output:
        f"{REPORTS}/reproduction.pdf",
    log:
        FILES.log("reproduction"),
    benchmark:
        RESULTS.benchmark("reproduction")
    threads: 1
    params:
        folder=subpath(output[0], parent=True),
        document=shipped.DOCUMENT,
        sums=sums(shipped.DOCUMENT),
    shell:
        # Relative paths: latexmk passes them to a shell.
        "(mkdir -p {params.folder:q}/.latex && cp {params.document:q} {params.folder:q}/.latex && cd {params.folder:q} && "
        "SOURCE_DATE_EPOCH=0 FORCE_SOURCE_DATE=1 latexmk -g -pdf -interaction=nonstopmode -halt-on-error "
        "-outdir=.latex .latex/reproduction.tex && mv .latex/reproduction.pdf .) > {log:q} 2>&1"


rule page:
    input:
        TABLES,
        SIGNAL,
        CLAIMS,
        FIGURES,
        plan=rules.plan.output,
        summary=rules.summarise.output.summary,
        comparisons=rules.comparisons.output,
        curves=rules.collect.output.curves,
        signals=rules.signals.output,
        runs=[] if PARTIAL else map(RESULTS.run, TRAINED),
    output:
        PAGE,
    log:
        FILES.log("page"),
    benchmark:
        RESULTS.benchmark("page")
    threads: 1
    params:
        results=subpath(input.curves, parent=True),
        folder=subpath(output[0], parent=True),
        figures=DRAWN,
        title=lambda wildcards: plan.title(config),
        mtimes=lambda wildcards: mtimes(map(RESULTS.run, TRAINED)) if PARTIAL else [],
        sums=sums(shipped.CLAIMS, shipped.CLAIMS_SCHEMA, shipped.PUBLISHED),
        template=sums(*(shipped.PAGE / part for part in ("report.html", "style.css"))),
        captions=sums(*(shipped.CAPTIONS / f"{figure}.rst" for figure in DRAWN)),
        code=fingerprint("mcgrpo.report.page"),
    shell:
        "python -m mcgrpo.launch mcgrpo.report.page --results {params.results:q} --reports {params.folder:q} "
        "--figures {params.figures:q} --title {params.title:q} > {log:q} 2>&1"
