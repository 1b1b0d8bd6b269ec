"""`python -m orbical` is the command `orbical`."""

from .cli import main

if __name__ == "__main__":
    main()
