"""`python -m orbical.studies.swiss_roll`."""

from .commands import main

if __name__ == "__main__":
    main()
