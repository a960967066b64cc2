from snakemake.utils import min_version

min_version("9.27")


# Only without --configfile, which would otherwise be merged over it.
if "study" not in config:

    configfile: "config/config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/analyse.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/track.smk"


rule all:
    default_target: True
    input:
        REPORT,
        expand("{reports}/after-{seeds}-seeds/headline.md", reports=REPORTS, seeds=[] if PARTIAL else ANSWERS),
        # Measurements too, so that deleted ones are made again even if the report is up to date.
        [*MEASURED, *CHECKS] if not PARTIAL else [],


onstart:
    check_gpus()
    scheduling.without_rate_limit(workflow)
    tracking.follow_study(str(RESULTS.folder))


onerror:
    print(f"What is finished can be reported: add `--config partial=true {REPORTS}/tables.tex` to the call.")
    print(f"Log of Snakemake: {', '.join(log)}")


# Run locally: these take seconds, or need the hub, which compute nodes often cannot reach.
localrules:
    all,
    dataset,
    model,
    audit,
    plan,
    overlap,
    sign_flips,
    collect,
    summarise,
    contrasts,
    signals,
    signal_table,
    track,
    answer,
    tables,
    claims,
    figure,
    reproduction,
    page,
