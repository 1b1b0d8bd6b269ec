"""`python -m orbical.studies.esd`."""

from . import main

if __name__ == "__main__":
    main()
