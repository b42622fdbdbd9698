"""What the calculator answers with: a number, its certified interval, its theorem, and what to do."""

from .answer import LABEL as LABEL
from .answer import Answer as Answer
from .answer import Answered as Answered
from .answer import Table as Table
from .plain_values import number_text as number_text
from .plain_values import plain as plain
from .plain_values import to_json as to_json
from .plain_values import unit_text as unit_text
from .quantity import SIDES as SIDES
from .quantity import Advised as Advised
from .quantity import Quantities as Quantities
from .quantity import Quantity as Quantity
from .quantity import Statement as Statement
from .quantity import scope as scope
