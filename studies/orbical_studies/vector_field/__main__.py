"""`python -m orbical_studies.vector_field`."""

from .commands import main

if __name__ == "__main__":
    main()
