include: "workflow/Snakefile"


# An `include` keeps the default target of the file that it is in.
workflow.default_target = "all"
