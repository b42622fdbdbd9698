"""The limit of inner products: what any unbiased estimate from b bits leaves, counting all bits.

Derivation.  An estimator may be any function g(q, message, key), not only <q, Q(x)>.  Let E g(q, .) = <q, x> for all q
and x, and let its error, d ``E(g(q, .) - <q, x>)^2/(|q|^2 |x|^2)`` averaged over the directions of q, be at most w for
every x. Draw an orthonormal basis q_1, .., q_d uniformly from the shared key and decode y = sum_i g(q_i, .) q_i.  Then
E y = x, and ``E|y - x|^2 = sum_i E(g(q_i, .) - <q_i, x>)^2`` = d times the average over q, at most ``w |x|^2``: y is an
unbiased operator of constant w with the same messages.  So ``unbiased_bits`` holds with omega = w, b >= d log2(1 +
1/w)/2, which solved for w is the value.  In return an unbiased operator of constant omega has exactly the error omega
on average over q.
"""

from ..bound import Bound, Example, Reference, Side, Status
from ..properties import Conclusion, Property
from ..setting import Setting
from ..special.inverse_power_of_two import InversePowerOfTwoLessOne
from ..symbols import bits, d

inner_product_limit = Bound(
    name="inner_product_limit",
    quantity="error of inner products of an unbiased estimate, average over the query, all bits counted",
    side=Side.LOWER,
    value=InversePowerOfTwoLessOne(2 * bits / d),
    assuming=(bits > 0,),
    reference=Reference("safaryan2020", "uncertainty principle, for estimators", arxiv="2002.08958"),
    status=Status.PROVED,
    setting=Setting(
        frozenset({Property.UNBIASED_INNER_PRODUCTS, Property.SELF_DELIMITING}),
        Conclusion.QUERY_ERROR,
    ),
    examples=(
        Example({"bits": 128, "d": 128}, "0.333333333333", "1/(4 - 1) by hand"),
        Example({"bits": 2, "d": 1}, "0.066666666667", "1/(16 - 1) by hand"),
        Example({"bits": 300, "d": 100}, "0.015873015873", "1/63 by hand"),
        Example({"bits": 4000, "d": 1000}, "0.003921568627", "1/255 by hand"),
    ),
    note="It bounds the longest message.",
    latex_name=r"\omega_{\mathrm{ip}}",
)
