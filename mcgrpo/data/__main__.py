"""See `mcgrpo.data.datasets`."""

from mcgrpo.data.datasets import main

if __name__ == "__main__":
    main()
