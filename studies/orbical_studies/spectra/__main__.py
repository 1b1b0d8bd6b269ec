"""`python -m orbical_studies.spectra`."""

from .commands import main

if __name__ == "__main__":
    main()
