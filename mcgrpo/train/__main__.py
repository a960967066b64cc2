"""See `mcgrpo.train.job`."""

from mcgrpo.train.job import main

if __name__ == "__main__":
    main()
