from .channel import Channel as Channel
from .choice import Choice as Choice
from .choice import Exchange as Exchange
from .choice import choose as choose
from .in_process import MeanOfRanks as MeanOfRanks
from .in_process import mean_of_ranks as mean_of_ranks
from .two_shot import TwoShot as TwoShot
