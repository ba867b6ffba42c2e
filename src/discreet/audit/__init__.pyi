from discreet.audit.guessing import gradient as gradient
from discreet.audit.guessing import model as model
from discreet.audit.guessing import one_run as one_run
from discreet.audit.guessing import transcript as transcript
from discreet.audit.neighbors import replay as replay
from discreet.audit.result import NOT_REFUTED as NOT_REFUTED
from discreet.audit.result import REFUTED as REFUTED
from discreet.audit.result import Audit as Audit
