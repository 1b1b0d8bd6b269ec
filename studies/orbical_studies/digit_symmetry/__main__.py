"""`python -m orbical_studies.digit_symmetry`."""

from .commands import main

if __name__ == "__main__":
    main()
