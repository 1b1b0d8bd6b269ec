"""`python -m orbical_studies.detection`."""

from .commands import main

if __name__ == "__main__":
    main()
