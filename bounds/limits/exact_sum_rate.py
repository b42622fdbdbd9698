"""Bits that m workers receive on average before each knows the exact sum of m independent words.

Setting.  Worker i holds X_i, uniform on a finite abelian group, the X_i independent; here d integers of ``word_bits``
bits, added modulo 2^word_bits.  Any network of messages from one worker to another, any number of rounds; keys, private
and shared, are free.  Every worker ends with S = sum X_i, surely.

Derivation.  Fix the keys.  Entropies are in units of H(X_i).  W_i are all messages that i sends or receives.

1. W_i determines X_i and S.  Given W_i, X_i and the other vectors are independent.  The others know S from their
   vectors and W_i, hence X_i: H(X_i|W_i) = H(X_i|W_i, X_j for j != i) = 0.  Worker i knows S from X_i and W_i.
2. Worker i knows W_i from X_i and from what it receives.  With w = sum H(W_i) all receive ``T >= sum H(W_i|X_i) = w -
   m``.
3. E_k are the messages between k and the workers before it.  E_k and S are functions of (W_1 .. W_{k-1}) and of W_k, so
   ``H(W_1 .. W_{k-1}) + H(W_k) >= H(W_1 .. W_k) + H(E_k, S)``.  Add over k = 2 .. m; all W determine all X:
   ``w >= m + sum_{k>1} H(E_k, S)``.
4. In reverse order, with F_k the messages between k and the workers after it: ``w >= m + sum_{k<m} H(F_k, S)``.  For 1
   < k < m the pair (E_k, F_k) is W_k, so H(E_k, S) + H(F_k, S) >= H(W_k) + H(S) = H(W_k) + 1.  E_m = W_m, F_1 = W_1.
   Add 3 and 4: 2 w >= 2 m + w + m - 2, so w >= 3 m - 2 and T >= 2 (m - 1).

A ring all-reduce, a sum by owners of shards and ``operators.summed.SharedScale`` attain it: no code does better.  A
network whose switches add is another matter, for they hold no X_i.
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..symbols import m, word_bits

exact_sum_rate = Bound(
    name="exact_sum_rate",
    quantity="bits a coordinate that a worker receives, all to know the exact sum of m independent words",
    side=Side.LOWER,
    value=2 * (1 - 1 / m) * word_bits,
    reference=Reference("ratedist", "submodularity of messages; a ring all-reduce attains it"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.UNIFORM_WORDS, Property.SELF_DELIMITING, Property.EXACT_SUM}),
        Conclusion.RECEIVED_RATE,
    ),
    examples=(
        Example({"m": 4, "word_bits": 8}, "12.0000000000", "ring of 4: 3 + 3 shards of 8/4 bits, by hand"),
        Example({"m": 2, "word_bits": 2}, "2.0000000000", "two workers send each other their words, by hand"),
    ),
    unit="bit",
    note="of any finite abelian group with 2^word_bits elements a coordinate; a ring all-reduce attains it.",
    latex_name=r"\bar b_{\mathrm{received}}",
)
