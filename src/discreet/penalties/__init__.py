"""Penalties, one file each."""

from discreet.penalties.base import Penalty, prox_coordinate, register_penalty
from discreet.penalties.box import Box
from discreet.penalties.elastic_net import ElasticNet
from discreet.penalties.group_l2 import GroupL2
from discreet.penalties.l1 import L1
from discreet.penalties.l2 import L2
from discreet.penalties.l2_ball import L2Ball
from discreet.penalties.none import NoPenalty

__all__ = [
    "L1",
    "L2",
    "Box",
    "ElasticNet",
    "GroupL2",
    "L2Ball",
    "NoPenalty",
    "Penalty",
    "prox_coordinate",
    "register_penalty",
]
