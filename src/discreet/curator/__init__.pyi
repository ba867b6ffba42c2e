from discreet.curator.curator import Curator as Curator
from discreet.curator.private_data import PrivateData as PrivateData
from discreet.curator.queries.minimizers import Problem as Problem
from discreet.curator.records.recoding import Recoding as Recoding
