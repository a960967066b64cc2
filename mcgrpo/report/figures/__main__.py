"""`python -m mcgrpo.report.figures`."""

from mcgrpo.report.figures import main

if __name__ == "__main__":
    main()
