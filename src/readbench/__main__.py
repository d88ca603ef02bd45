"""`python -m readbench`."""

from readbench.cli import main

if __name__ == "__main__":
    main()
