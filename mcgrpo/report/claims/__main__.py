"""See `mcgrpo.report.claims.judge`."""

from mcgrpo.report.claims.judge import main

if __name__ == "__main__":
    main()
