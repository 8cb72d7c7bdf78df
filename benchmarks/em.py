"""One EM iteration of a mixture against scikit-learn's: time and extra memory, as ratios measured in one run.

    python benchmarks/em.py [--rows 1000000] [--components 10] [--columns 50] [--repeats 3]

Ours is an E-step and the moments of the M-step through the engine, clipping included, and the M-step; scikit-learn's is
`_e_step` and `_m_step` of `GaussianMixture(covariance_type="full")`. Rows are drawn in advance. Memory is the peak of
what numpy allocates beyond the rows, measured in a run of its own. Threads are those of the environment.
"""

import argparse
import json
import time
import tracemalloc

import numpy as np
from sklearn.mixture import GaussianMixture as ScikitMixture

from sfumato.estimators.records import ArrayRecords
from sfumato.mechanisms.noise import NoNoise
from sfumato.mechanisms.queries import noisy_sum
from sfumato.methods.mixtures.em_moments import EmMoments
from sfumato.methods.mixtures.steps import MStep, random_start
from sfumato.models.mixtures.covariances import FullCovariance
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.plan import Plan, Stage
from sfumato.records.engine import reduce


def our_iteration(rows, mixture):
    ledger = Ledger(Plan([Stage(name="em", noise_multiplier=1.0)]), None)
    statistic = EmMoments(lambda chunk: chunk["x"], mixture, (0.3, 0.5, 0.8))
    noisy = noisy_sum(reduce(statistic, ArrayRecords(rows)), stage="em", ledger=ledger, noise=NoNoise())
    return MStep()(statistic.moments(noisy), mixture)


def their_iteration(rows, model):
    _, log_responsibilities = model._e_step(rows)
    model._m_step(rows, log_responsibilities)
    return model


def started(mixture):
    precisions = np.linalg.inv(mixture.covariances)
    model = ScikitMixture(
        mixture.n_components, reg_covar=0, weights_init=mixture.weights, means_init=mixture.means,
        precisions_init=precisions,
    )  # fmt: skip
    model.weights_, model.means_ = mixture.weights, mixture.means
    model.covariances_, model.precisions_cholesky_ = mixture.covariances, mixture.form.whiteners(mixture.covariances)
    return model


def peak(call):
    tracemalloc.start()
    call()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found / 2**20


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--components", type=int, default=10)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    rows = 0.08 * rng.standard_normal((options.rows, options.columns))
    mixture = random_start(options.components, np.full(options.columns, 0.1), form=FullCovariance(), rng=rng)
    ours, theirs = our_iteration(rows, mixture), their_iteration(rows, started(mixture))
    agree = float(np.abs(ours.means - theirs.means_).max())
    times = [
        (seconds(lambda: our_iteration(rows, mixture)), seconds(lambda: their_iteration(rows, started(mixture))))
        for _ in range(options.repeats)
    ]
    best = [min(column) for column in zip(*times, strict=True)]
    memory = [peak(lambda: our_iteration(rows, mixture)), peak(lambda: their_iteration(rows, started(mixture)))]
    print(
        json.dumps(
            {
                "rows": options.rows,
                "largest_difference_of_means": agree,
                "seconds": {"ours": best[0], "scikit_learn": best[1], "ratio": best[0] / best[1]},
                "extra_mib": {"ours": memory[0], "scikit_learn": memory[1], "ratio": memory[0] / memory[1]},
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
