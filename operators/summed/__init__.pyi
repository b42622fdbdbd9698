from .end import SumEnd as SumEnd
from .in_process import SumOfRanks as SumOfRanks
from .in_process import sum_of_ranks as sum_of_ranks
from .power_sgd import SummedPowerSGD as SummedPowerSGD
from .shared_scale import SharedScale as SharedScale
from .sign_vote import SignVote as SignVote
from .summed import Summed as Summed
