"""`python -m orbical_studies.qm9`."""

from .commands import main

if __name__ == "__main__":
    main()
