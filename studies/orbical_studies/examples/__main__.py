"""`python -m orbical_studies.examples`."""

from .commands import main

if __name__ == "__main__":
    main()
