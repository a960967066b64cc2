"""`python -m mcgrpo.launch` in a process of torchrun: when the agent is killed, its job is killed too."""

from mcgrpo.launch.__main__ import main
from mcgrpo.launch.processes import die_with_parent

if __name__ == "__main__":
    die_with_parent()
    main()
