from discreet.penalties.base import Penalty as Penalty
from discreet.penalties.box import Box as Box
from discreet.penalties.elastic_net import ElasticNet as ElasticNet
from discreet.penalties.group_l2 import GroupL2 as GroupL2
from discreet.penalties.l1 import L1 as L1
from discreet.penalties.l2 import L2 as L2
from discreet.penalties.l2_ball import L2Ball as L2Ball
from discreet.penalties.none import NoPenalty as NoPenalty
