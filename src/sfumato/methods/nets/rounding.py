"""How far a sum of clipped gradients in 32 bits is from the exact one, and what that adds to its sensitivity.

    |fl(Σ wᵢⱼaᵢₖ) − Σ wᵢⱼaᵢₖ| ≤ γ_r Σ |wᵢⱼaᵢₖ|,   γ_r = r u/(1 − r u),   u = 2^-24

for any order of summation in which no term is rounded more than r times (Higham, Accuracy and Stability of Numerical
Algorithms, 2nd ed. 2002, chapters 3 and 4). Over all parameters that is at most γ_r times the sum of the records'
norms, so at most γ_r b C in a batch of b records. Proof: docs/proofs/sampled_gradients.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

UNIT = 2.0**-24  # half a unit in the last place of a 32-bit float, relative
MOST_NARROW = 1024
"""Records of a batch at most whose gradients are summed in 32 bits; they are worked off at once."""
_BLOCKS = (128, 96, 64)  # records a product: the first of which the slack is small, or the last
_TAIL = 4.0  # standard deviations of a batch's size above its mean: what is larger takes 64 bits, which is slower
_SMALL_SLACK, _MOST_SLACK = 0.005, 0.01
_UPWARD = 1 + 2.0**-40  # the reckoning below is in 64 bits


@dataclass(frozen=True, slots=True)
class Blocks:
    """How batches are summed in 32 bits: all facts are public, and none depends on a batch at hand.

    Attributes:
        most: records of a batch that is summed in 32 bits; larger ones are summed in 64.
        block: records at most in one product; the products are added in 32 bits.
    """

    most: int
    block: int

    @property
    def rounding(self) -> float:
        """γ: error of a sum ÷ the sum of its terms' sizes.

        A term is rounded at most `block` times in its product, and once per addition of products.
        """
        roundings = self.block + math.ceil(self.most / self.block) - 1
        return roundings * UNIT / (1 - roundings * UNIT)

    @property
    def slack(self) -> float:
        """What rounding adds to the sensitivity, in clip norms: the errors of both neighbours' sums, γ·most each."""
        return 2 * self.most * self.rounding * _UPWARD


def blocks_for(expected: float) -> Blocks | None:
    """Return how batches of so many records on the mean are summed in 32 bits; None where 64 bits are better.

    Args:
        expected: public mean of a batch's size: sampling probability times the public number of records.
    """
    most = math.ceil(expected + _TAIL * math.sqrt(expected)) + 1
    if most > MOST_NARROW:
        return None
    sizes = [Blocks(most, min(block, most)) for block in _BLOCKS]
    chosen = next((blocks for blocks in sizes if blocks.slack <= _SMALL_SLACK), sizes[-1])
    return chosen if chosen.slack <= _MOST_SLACK else None


def products_are_whole(shapes: Sequence[tuple[int, int]], block: int, device: str | torch.device) -> bool:
    """Return whether products of these shapes keep all 24 bits of 32-bit floats: settings of torch may cut them to 8.

    Args:
        shapes: rows and columns of the products.
        block: terms of each entry.
        device: where they are made.
    """
    last = 1 + 2 * UNIT
    for rows, columns in shapes:
        left, right = torch.zeros(block, rows, device=device), torch.zeros(block, columns, device=device)
        for one, other in ((last, 1.0), (1.0, last)):
            left[0], right[0] = one, other
            if not torch.equal(torch.mm(left.T, right), torch.full((rows, columns), last, device=device)):
                return False
    return True
