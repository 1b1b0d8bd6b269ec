"""`python -m orbical.studies.esd`."""

from .commands import main

if __name__ == "__main__":
    main()
