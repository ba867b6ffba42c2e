from discreet.curator import cluster as cluster
from discreet.curator import limited as limited
from discreet.curator import local_cluster as local_cluster
