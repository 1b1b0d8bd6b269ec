"""`python -m orbical_studies.digits_nero`."""

from .commands import main

if __name__ == "__main__":
    main()
