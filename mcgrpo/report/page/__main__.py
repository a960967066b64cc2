"""See `mcgrpo.report.page.write`."""

from mcgrpo.report.page.write import main

if __name__ == "__main__":
    main()
