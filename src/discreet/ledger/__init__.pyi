from discreet.ledger.account import Spent as Spent
from discreet.ledger.ledger import Ledger as Ledger
from discreet.ledger.ledger import Reservation as Reservation
