from sfumato.holders.cards import Card as Card
from sfumato.holders.site import Round as Round
from sfumato.holders.site import holder_round as holder_round
from sfumato.holders.site import init_holder as init_holder
