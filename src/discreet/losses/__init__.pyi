from discreet.losses.base import Loss as Loss
from discreet.losses.base import register_loss as register_loss
from discreet.losses.huber import Huber as Huber
from discreet.losses.logistic import Logistic as Logistic
from discreet.losses.poisson import Poisson as Poisson
from discreet.losses.smoothed_hinge import SmoothedHinge as SmoothedHinge
from discreet.losses.softmax import Softmax as Softmax
from discreet.losses.squared import Squared as Squared
