from discreet.datasets.hospital_stays import CLASSES as CLASSES
from discreet.datasets.hospital_stays import CODEBOOK as CODEBOOK
from discreet.datasets.hospital_stays import OUTCOME as OUTCOME
from discreet.datasets.hospital_stays import Table as Table
from discreet.datasets.hospital_stays import codebook_bounds as codebook_bounds
from discreet.datasets.hospital_stays import hospital as hospital
from discreet.datasets.hospital_stays import schema_text as schema_text
from discreet.datasets.hospital_stays import write_csv as write_csv
