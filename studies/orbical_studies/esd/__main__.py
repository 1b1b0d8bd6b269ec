"""`python -m orbical_studies.esd`."""

from .commands import main

if __name__ == "__main__":
    main()
