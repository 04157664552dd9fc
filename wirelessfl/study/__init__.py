"""Studies: many runs of one scenario, their design, table and picture."""

from wirelessfl.study.content import content_id
from wirelessfl.study.design import Run, StudyDesign
from wirelessfl.study.factors import Factor, value_text
from wirelessfl.study.file import study_schema
from wirelessfl.study.loading import load_study
from wirelessfl.study.record import RunRecord
from wirelessfl.study.result import Study, open_study
from wirelessfl.study.runner import run_study
from wirelessfl.study.task import Message, Outcome, Progress
from wirelessfl.summary.curves import Band, band

__all__ = [
    "Band",
    "Factor",
    "Message",
    "Outcome",
    "Progress",
    "Run",
    "RunRecord",
    "Study",
    "StudyDesign",
    "band",
    "content_id",
    "load_study",
    "open_study",
    "run_study",
    "study_schema",
    "value_text",
]
