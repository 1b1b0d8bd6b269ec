"""`python -m orbical_studies.point_clouds`."""

from .commands import main

if __name__ == "__main__":
    main()
