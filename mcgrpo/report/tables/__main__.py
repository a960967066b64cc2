"""See `mcgrpo.report.tables.write`."""

from mcgrpo.report.tables.write import main

if __name__ == "__main__":
    main()
