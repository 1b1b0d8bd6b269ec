"""`python -m orbical_studies.swiss_roll`."""

from .commands import main

if __name__ == "__main__":
    main()
