"""`python -m orbical_studies.galaxies`."""

from .commands import main

if __name__ == "__main__":
    main()
