"""`python -m orbical.studies.galaxies`."""

from . import main

if __name__ == "__main__":
    main()
