"""How much variance (ε, δ) needs: by conversion from ρ, by our bounds, and what dp-accounting finds
for the same noise.

Needs the `test` extra, for dp-accounting.
"""

import math
from fractions import Fraction

from tallytree.privacy.approximate import ANY_ANSWERS, AnswerBounds, largest_rho
from tallytree.privacy.conversion import rho_from_epsilon
from tallytree.privacy.lattice_profile import lattice_delta

LEVELS = 3
EXACT = AnswerBounds(shares=(Fraction(1, LEVELS),) * LEVELS)
LEVELS_ONLY = AnswerBounds(Fraction(LEVELS), LEVELS)


def main() -> list[dict[str, float]]:
    from dp_accounting.pld import privacy_loss_distribution as pld

    print(f"{LEVELS} measurements of sensitivity 1, equal shares; sigma2 per measurement")
    print(
        "  epsilon  delta  by rho   ours    saved  any plan  adaptive   delta: optimistic      "
        "ours   pessimistic"
    )
    rows = []
    for epsilon in (
        Fraction(1, 10),
        Fraction(1, 2),
        Fraction(1),
        Fraction(2),
        Fraction(4),
        Fraction(8),
    ):
        for delta in (Fraction(1, 10**6), Fraction(1, 10**9)):
            converted = rho_from_epsilon(epsilon, delta)
            rho, anything, rounds = (
                largest_rho(epsilon, delta, answers)
                for answers in (EXACT, ANY_ANSWERS, LEVELS_ONLY)
            )
            sigma2 = LEVELS / (2 * rho)
            ours = lattice_delta([sigma2] * LEVELS, epsilon)
            assert ours is not None
            low, high = (
                pld.from_discrete_gaussian_mechanism(math.sqrt(sigma2), pessimistic_estimate=way)
                .self_compose(LEVELS)
                .get_delta_for_epsilon(float(epsilon))
                for way in (False, True)
            )
            row = {
                "epsilon": float(epsilon),
                "delta": float(delta),
                "sigma2_by_rho": float(LEVELS / (2 * converted)),
                "sigma2": float(sigma2),
                "saved": float(1 - converted / rho),
                "saved_any_plan": float(1 - converted / anything),
                "saved_adaptive": float(1 - converted / rounds),
                "delta_optimistic": low,
                "delta_ours": float(ours),
                "delta_pessimistic": high,
            }
            rows.append(row)
            print(
                f"  {row['epsilon']:7g} {row['delta']:6g} {row['sigma2_by_rho']:9.4g} "
                f"{row['sigma2']:8.4g} {row['saved']:6.1%}"
                f"  {row['saved_any_plan']:7.1%} {row['saved_adaptive']:9.1%}   {low:.8e} "
                f"{row['delta_ours']:.8e} {high:.8e}"
            )
    return rows
