"""See `mcgrpo.grade.completions`."""

from mcgrpo.grade.completions import main

if __name__ == "__main__":
    main()
