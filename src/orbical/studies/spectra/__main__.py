"""`python -m orbical.studies.spectra`."""

from . import main

if __name__ == "__main__":
    main()
