"""Scaling laws of language models' losses as they are published: recalled numbers of other people's runs.

Those of Hoffmann et al. 2022, and of Besiroglu et al. 2024, who fitted the same runs again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bounds.bibliography import bibtex
from bounds.provenance import Reference, Status

TOKENS_PER_PARAMETER = 20
RULE = Reference("hoffmann2022", "about 20 tokens a parameter")


@dataclass(frozen=True)
class ScalingLaw:
    """A fit L = E + A/N^alpha + B/D^beta of final losses, in nats a token, to runs on its authors' data.

    Parameters
    ----------
    reference : Reference
        Where it is stated.
    E : float
        Loss that no model and no data lower.
    A : float
        Factor of the model's size.
    B : float
        Factor of the tokens.
    alpha : float
        Exponent of the model's size.
    beta : float
        Exponent of the tokens.
    """

    reference: Reference
    E: float
    A: float
    B: float
    alpha: float
    beta: float

    def loss(self, parameters: float, tokens: float) -> float:
        """Return the fitted loss of a model after so many tokens.

        Parameters
        ----------
        parameters : float
            N, of the model.
        tokens : float
            D, that it was trained on.
        """
        return self.E + self.A / parameters**self.alpha + self.B / tokens**self.beta

    def tokens_for(self, parameters: float) -> float:
        """Return the tokens D at which no other N, D with the same product has a lower fitted loss.

        There alpha A/N^alpha = beta B/D^beta.

        Parameters
        ----------
        parameters : float
            N, of the model.
        """
        return float((self.beta * self.B / (self.alpha * self.A) * parameters**self.alpha) ** (1 / self.beta))


LAWS = (
    ScalingLaw(Reference("hoffmann2022", "approach 3, parametric fit"), 1.69, 406.4, 410.7, 0.34, 0.28),
    ScalingLaw(Reference("besiroglu2024", "approach 3, fitted again"), 1.8172, 482.01, 2085.43, 0.3478, 0.3658),
)


def recalled(parameters: float, tokens: float) -> tuple[dict[str, Any], ...]:
    """Return what published laws say of a model, each with its status, its source and the source's BibTeX entry.

    Parameters
    ----------
    parameters : float
        N, of the model.
    tokens : float
        D, of the training.

    Returns
    -------
    tuple of dict
        "status", "source", "where", "bibtex", the "tokens" that such a model deserves, and the fitted "loss" at N and
        D in nats a token (None where a source's rule states none).
    """
    rule = _row(RULE, TOKENS_PER_PARAMETER * parameters, None)
    return rule, *(_row(law.reference, law.tokens_for(parameters), law.loss(parameters, tokens)) for law in LAWS)


def _row(reference: Reference, tokens: float, loss: float | None) -> dict[str, Any]:
    place = {"source": reference.key, "where": reference.where, "bibtex": bibtex(reference)}
    return {"status": Status.RECALLED.value, **place, "tokens": tokens, "loss": loss}
