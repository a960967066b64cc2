"""`python -m mcgrpo.report.figures`."""

from mcgrpo.report.figures import main

main()
