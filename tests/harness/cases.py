"""Every statistic and mechanism of the package, with records that try to break them."""

from __future__ import annotations

import numpy as np

from harness.privacy import MechanismCase, StatisticCase
from sfumato.data.kinds import Boolean, Categorical, Image, Integer
from sfumato.data.schema import Schema
from sfumato.encoders.grid import Grid
from sfumato.learners.counts import RowCount
from sfumato.learners.images import ClassCounts, ClassSums, ImageLayout, ResidualMoments
from sfumato.learners.marginals import ClassCellCounts, TableLayout
from sfumato.learners.moments import ClassSecondMoments
from sfumato.mechanisms.queries import noisy_count, noisy_histogram, noisy_second_moment, noisy_sum
from sfumato.models.columns import uncalibrated_column

TABLE = Schema(
    columns={
        "age": Integer(lower=0, upper=99, nullable=True),
        "city": Categorical(categories=("a", "b", "c"), other="z"),
        "paid": Integer(lower=-5, upper=10**6),
        "member": Boolean(),
    },
    rows=100,
)
IMAGES = Schema(columns={"x": Image(shape=(4, 4), dtype="float64", upper=1.0), "y": Boolean()}, rows=100)


def table_rows(n: int, seed: int = 0):
    """Single coded records: random ones, and every corner of the domain."""
    rng = np.random.default_rng(seed)
    ages = [*rng.random(n), 0.0, 1.0, np.nan, np.nan]
    paid = [*rng.random(n), 1.0, 0.0, 0.0, 1.0]
    records = []
    for i, (age, amount) in enumerate(zip(ages, paid, strict=True)):
        for member in (0, 1):
            city = i % 4
            records.append(
                {
                    "age": np.array([age]),
                    "city": np.array([city], dtype=np.int32),
                    "paid": np.array([amount]),
                    "member": np.array([member], dtype=np.int32),
                }
            )
    return records


def image_rows(n: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    pixels = [rng.random((4, 4)) for _ in range(n)]
    corners = [np.ones((4, 4)), np.zeros((4, 4)), np.full((4, 4), np.nan), np.full((4, 4), np.inf)]
    corners += [np.full((4, 4), -np.inf), np.full((4, 4), 1e300), np.eye(4), 1 - np.eye(4)]
    # half of the pixels on, and the other half: clipped vectors at right angles
    half = np.zeros((4, 4))
    half[:2] = 1
    corners += [half, 1 - half]
    return [
        {"x": image[None], "y": np.array([label], dtype=np.int32)} for image in [*pixels, *corners] for label in (0, 1)
    ]


def table_layout() -> TableLayout:
    return TableLayout(Grid.of(TABLE, numeric_cells=8), target=3)


def chain_columns(*, scored: bool):
    """Column models as a fit would release them, with uneven probabilities, so that rare cells have long vectors."""
    rng = np.random.default_rng(1)
    columns = []
    for column in table_layout().features:
        probabilities = rng.dirichlet(np.full(column.n_cells, 0.3), size=2)
        groups = np.arange(column.n_cells)
        if column.numeric and scored:
            groups = np.zeros(column.n_cells, dtype=int)
            if column.kind.nullable:
                groups[-1] = 1
        columns.append(uncalibrated_column(probabilities, groups, scored=scored and column.numeric))
    return tuple(columns)


def _cases() -> dict[str, StatisticCase]:
    layout, images = table_layout(), ImageLayout.of(IMAGES)
    # class 0 sits at one corner of the cube and class 1 at the other: residuals of either sign exist
    means = np.stack([np.zeros(16), np.ones(16)])
    axes = np.linalg.qr(np.random.default_rng(2).standard_normal((16, 5)))[0]
    table, pictures = table_rows(60), image_rows(60)
    cases = [
        # under replace-one the number of records is public: the bound of 1 only overstates
        StatisticCase("row count", RowCount(), table, attained=0.0),
        StatisticCase("class cell counts", ClassCellCounts(layout), table),
        StatisticCase("second moments", ClassSecondMoments(layout, chain_columns(scored=False), 1.0), table),
        StatisticCase("second moments, scores", ClassSecondMoments(layout, chain_columns(scored=True), 1.0), table),
        StatisticCase(
            "second moments, constant", ClassSecondMoments(layout, chain_columns(scored=True), 1.0, 0.5), table
        ),
        StatisticCase("image counts", ClassCounts(images), pictures),
        StatisticCase("image sums", ClassSums(images), pictures),
        StatisticCase("residual moments", ResidualMoments(images, means), pictures, attained=0.9),
        StatisticCase("residual moments, axes", ResidualMoments(images, means, axes), pictures, attained=0.6),
    ]
    return {case.name: case for case in cases}


STATISTICS = _cases()

MECHANISMS = {
    case.name: case
    for case in (
        MechanismCase("noisy_count", noisy_count, STATISTICS["row count"]),
        MechanismCase("noisy_histogram", noisy_histogram, STATISTICS["class cell counts"]),
        MechanismCase("noisy_sum", noisy_sum, STATISTICS["image sums"]),
        MechanismCase("noisy_second_moment", noisy_second_moment, STATISTICS["second moments"], symmetric=True),
        MechanismCase(
            "noisy_second_moment, images", noisy_second_moment, STATISTICS["residual moments"], symmetric=True
        ),
    )
}
