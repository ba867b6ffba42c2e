from discreet.models.scoring.private import private_score as private_score
from discreet.models.scoring.public import public_score as public_score
from discreet.models.scoring.result import PrivateScore as PrivateScore
