from .catalogue import all_operators as all_operators
from .catalogue import parse as parse
from .compressors.identity import Identity as Identity
from .key import Key as Key
from .message import CorruptMessage as CorruptMessage
from .message import Message as Message
from .operator import Operator as Operator
from .operator import Size as Size
