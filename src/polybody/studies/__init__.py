"""Studies: sweeps and Monte Carlo over a model, from one core to a Ray cluster."""

from polybody.studies.results import StudyResults
from polybody.studies.study import Study
from polybody.studies.tasks import Case

__all__ = ["Case", "Study", "StudyResults"]
