from snakemake.utils import min_version

min_version("9.27")


# Not a plain `configfile:`, which --configfile would be merged into: a study is one file, whole.
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
        # What is measured, though the report needs none of it once it is made: what was deleted is made again.
        [*MEASURED, *CHECKS] if not PARTIAL else [],


onstart:
    check_gpus()
    tracking.follow_study(str(RESULTS.folder))


onerror:
    print(f"What is finished can be reported: add `--config partial=true {REPORTS}/tables.tex` to the call.")
    print(f"Log of Snakemake: {', '.join(log)}")


# Submitted to no cluster: seconds of work, or the way to the hub, which compute nodes often do not have.
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
    track,
    tables,
    claims,
    figure,
    reproduction,
    page,
