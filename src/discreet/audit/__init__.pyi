from discreet.audit.audit_result import NOT_REFUTED as NOT_REFUTED
from discreet.audit.audit_result import REFUTED as REFUTED
from discreet.audit.audit_result import Audit as Audit
from discreet.audit.gradient_audit import gradient as gradient
from discreet.audit.model_audit import model as model
from discreet.audit.one_run_audit import one_run as one_run
from discreet.audit.replay_audit import replay as replay
from discreet.audit.transcript_audit import transcript as transcript
