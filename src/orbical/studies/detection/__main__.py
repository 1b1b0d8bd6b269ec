"""`python -m orbical.studies.detection`."""

from .commands import main

if __name__ == "__main__":
    main()
