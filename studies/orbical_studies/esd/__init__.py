"""The ESD paper's experiments on real images: six losses, two data sets, before and after scaling.

    python -m orbical_studies.esd pack FOLDER            # the images in two small files
    python -m orbical_studies.esd run --only mnist ...   # train, one result line a configuration
    python -m orbical_studies.esd report ...             # tables, CSV, figures, page

Every finished configuration is one line of JSON in a results file, written at once; a run skips
what its results file already has.
"""

from .commands import main

__all__ = ["main"]
