"""What releases of images and of linked rows are good for, use by use: from public figures alone."""

from __future__ import annotations

import numpy as np

from sfumato.errors import EstimateError
from sfumato.inference.question_methods import UnitEstimates
from sfumato.models.images.sampler import ImagePortrait
from sfumato.release.model import ReleaseValue
from sfumato.report.verdicts import CLASSIFIER, SOFTWARE, Verdict, Word, regressions_of, tables_of

_FAR, _NEAR = 3.0, 0.5  # distance of the two closest mean pictures ÷ what noise adds to it
_SUMS = "class sums"  # as the method names its measurement


def image_verdicts(release: ReleaseValue) -> list[Verdict]:
    """Return a verdict for each use of a release of images by the default method; none for other methods."""
    if release.sampler["name"] != ImagePortrait.name:
        return []
    software = Verdict(SOFTWARE, "good", "Every picture keeps the schema: shape, type, range, labels.")
    return [_taught(release), Verdict("a single picture", "poor", _NOBODY), software]


_NOBODY = "Each is drawn: it shows nobody, and small details, text among them, are invented."


def _taught(release: ReleaseValue) -> Verdict:
    use = CLASSIFIER
    if release.sampler.get("label") is None:
        return Verdict(use, "not measured", "There is no column of labels beside the images.")
    apart = closest_classes(release)
    if apart is None:
        return Verdict(use, "not measured", "The release does not hold its measurements.")
    word: Word = "good" if apart >= _FAR else "with care" if apart >= _NEAR else "poor"
    return Verdict(
        use,
        word,
        f"The mean pictures of the two most alike classes are {apart:.2g} times as far apart as noise puts them.",
    )


def closest_classes(release: ReleaseValue) -> float | None:
    """Return how far the two closest mean pictures are apart ÷ the root mean square that noise adds to a distance.

    The squared distance of noisy means is that of the exact ones plus a known expectation, which is taken off, and so
    are two standard deviations of it: what noise alone may look like counts as nothing.
    """
    sums = next((m for m in release.measurements if m.name == _SUMS), None)
    if sums is None or len(sums.value) < 2:
        return None
    total = float(sums.value[:, -1].sum())
    per_record = total / release.certificate.n_public  # the constant that counts a record
    counts = np.maximum(sums.value[:, -1] / per_record, 1.0)
    means = sums.value[:, :-1] / counts[:, None]
    noise = means.shape[1] * (sums.noise_std / counts) ** 2
    first, second = np.triu_indices(len(means), 1)
    added = noise[first] + noise[second]
    squared = ((means[first] - means[second]) ** 2).sum(axis=1) - added * (1 + 2 * np.sqrt(2 / means.shape[1]))
    return float(np.sqrt(np.maximum(squared, 0.0) / added).min())


def linked_verdicts(release: ReleaseValue) -> list[Verdict]:
    """Return a verdict for each use of a release of linked rows, from the answers about its units."""
    software = Verdict(SOFTWARE, "good", "Every row keeps the schema, and units have their rows in order.")
    later = Verdict(
        "how rows follow each other",
        "not measured",
        "It is in the samples, without intervals: compare it on records of your own.",
    )
    try:
        answers = UnitEstimates(release).answers(most_pairs=20)
    except EstimateError:
        return [later, software]
    return [
        tables_of(answers, "tables of units: counts, constants, first rows"),
        regressions_of(answers),
        later,
        software,
    ]
