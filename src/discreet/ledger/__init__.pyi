from discreet.ledger.account import Spent as Spent
from discreet.ledger.ledger import Ledger as Ledger
from discreet.ledger.reservation import Reservation as Reservation
