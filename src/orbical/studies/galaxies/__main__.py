"""`python -m orbical.studies.galaxies`."""

from .commands import main

if __name__ == "__main__":
    main()
