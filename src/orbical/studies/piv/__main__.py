"""`python -m orbical.studies.piv`."""

from .commands import main

if __name__ == "__main__":
    main()
