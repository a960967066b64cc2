"""See `mcgrpo.generate.complete`."""

from mcgrpo.generate.complete import main

if __name__ == "__main__":
    main()
