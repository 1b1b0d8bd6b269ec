"""`python -m orbical_studies.piv`."""

from .commands import main

if __name__ == "__main__":
    main()
