"""Every method on neighbours that release the same: sensitivities hold, and nothing else reaches the release.

`harness.coupling` says how. One record more, or another in the place of one: an ordinary one, one of corners and bad
cells, and one that is alone with its label.
"""

from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

pytest.importorskip("torch", reason="networks need the extra nets")

from fixtures import tables
from fixtures.costly import diagonal
from fixtures.methods import DATA_SETS, MIXED, PLUGINS, QUICK, refusal, skip_refused
from harness.coupling import attack, leaves
from sfumato import DPGM, DPMix, EstimateCount, IndependentItems, LatentClasses, MaxEntropy
from sfumato.estimators import DPFactorAnalysis, DPGaussianMixture, DPKernelKMeans, DPKMeans
from sfumato.fitting.purposes import Training
from sfumato.io.sources import open_source
from sfumato.mechanisms.mixing import FixedDegreeMixing, SubsetMixing
from sfumato.methods import max_entropy
from sfumato.methods.dpgm.settings import RBM, VAE
from sfumato.methods.nets.clip_norms import AdaptiveClip
from sfumato.methods.registry import OWN
from sfumato.methods.tables import recipe as tables_module
from sfumato.methods.tables.cell_counts import CellCounts
from sfumato.schema.grid import single_codes
from sfumato.schema.open_schema import OpenSchema
from sfumato.schema.schema import Schema

pytestmark = pytest.mark.usefixtures("coarse_accounts")
QUICKEST = ("max-entropy", "independent-items", "dpmix, fixed degree", *PLUGINS)


def parts(methods):
    """The methods as parameters: networks are left to `make audit`."""
    marks = (pytest.mark.audit, pytest.mark.slow)
    return [name if name in QUICKEST else pytest.param(name, marks=marks) for name in methods]


ADAPTIVE = {"clip_norm": AdaptiveClip()}
TABLE_METHODS = {
    **QUICK,
    **DATA_SETS,
    "dpgm, adaptive": partial(DPGM, component=VAE(hidden=(8,), latent_dim=2), **{**MIXED, **ADAPTIVE}),
    "dpgm, adaptive machines": partial(DPGM, component=RBM(hidden=6, n_chains=3, burn_in=3), **{**MIXED, **ADAPTIVE}),
    "dpmix, fixed degree": partial(DPMix, mixture_degree=4, mixing=FixedDegreeMixing()),
}
BASE = tables.frame(150)
BASE = BASE[BASE["income"] == "<=50K"].head(70).reset_index(drop=True)
CORNER = {
    "id": 0, "sex": "x", "grade": None, "member": True, "age": 10**6, "weight": np.nan,
    "seen": pd.Timestamp("2200-01-01"), "income": ">50K",
}  # fmt: skip
RECORDS = {"alone with its label": CORNER, "an ordinary one": tables.frame(300).iloc[299].to_dict()}


def made(method: str):
    """The method at ε = 2, with batches that are a part of the records."""
    make = TABLE_METHODS[method]
    sampled = isinstance(make, partial) and "batch_size" in make.keywords
    return make(epsilon=2.0, **({"batch_size": 60} if sampled else {}))


def with_record(record: dict, frame: pd.DataFrame = BASE, place: int | None = None) -> pd.DataFrame:
    """The frame with a record at its end, or in the place of one."""
    row = pd.DataFrame([record])[list(frame.columns)]
    rest = frame if place is None else frame.drop(index=frame.index[place])
    return pd.concat([rest, row], ignore_index=True).astype({"grade": object, "age": np.int64, "id": np.int64})


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize("target", [None, "income"])
@pytest.mark.parametrize("method", parts(TABLE_METHODS))
def test_tables(monkeypatch, method, target, record):
    skip_refused(method, tables.schema(), target)

    def fit(data):
        return leaves(made(method).fit(data, schema=tables.schema(), target=target, seed=1))

    frame = with_record(RECORDS["an ordinary one"])
    attack(monkeypatch, fit, frame, with_record(RECORDS[record], frame))
    if record == "alone with its label":
        attack(monkeypatch, fit, frame, with_record(RECORDS[record], frame, len(frame) - 1), replaced=True)


@pytest.mark.audit
@pytest.mark.slow
def test_subsets_of_replaced_records(monkeypatch):
    def fit(data):
        method = DPMix(epsilon=2.0, mixture_degree=4, mixing=SubsetMixing())
        return leaves(method.fit(data, schema=tables.schema(), target="income", seed=1))

    frame = with_record(RECORDS["an ordinary one"], tables.frame(tables.ROWS - 1))
    attack(monkeypatch, fit, frame, with_record(CORNER, frame, len(frame) - 1), replaced=True)


LABELS_ALONE = "income: {kind: categorical, categories: [low, high]}"
CONSTANT_ALONE = "age: {kind: integer, lower: 7, upper: 7, nullable: true}"
ALONE = "rows: 240\ncolumns:\n  id: identifier\n  {column}\n"
UNITS = tables.SCHEMA_TEXT.replace("columns:", "unit: {column: id, max_rows: 3}\ncolumns:")
CLASSES = tables.SCHEMA_TEXT.replace("[f, m]", "[f, m], nullable: true")
QUESTIONS = (
    "questions:\n  - ols: age ~ C(sex) * weight\n  - logit: income ~ age\n  - table: [sex, grade, member]\n"
    "  - {mean: weight, by: [sex, income]}\n"
)


MAX_ENTROPY_TABLES = {  # schema, target, ε, and how many classes the second release tells apart, none too
    "moments by class": (tables.SCHEMA_TEXT, "income", 90.0, 3),
    "moments by class, more noise": (tables.SCHEMA_TEXT, "income", 4.0, 3),
    "a nullable target": (CLASSES, "sex", 90.0, 3),
    "a target with a missing level of four": (tables.SCHEMA_TEXT, "grade", 90.0, 4),
    "a target of many labels": (tables.SCHEMA_TEXT.replace("[f, m]", "[f, m, a, b, c, d, e]"), "sex", 90.0, None),
    "a number to predict": (tables.SCHEMA_TEXT, "age", 90.0, 4),
    "a number to predict, much noise": (tables.SCHEMA_TEXT, "age", 0.05, None),
    "one class": (tables.SCHEMA_TEXT.replace('["<=50K", ">50K"]', "[all]"), "income", 2.0, None),
    "the target alone": (ALONE.format(column=LABELS_ALONE), "income", 2.0, None),
    "a constant alone": (ALONE.format(column=CONSTANT_ALONE), None, 2.0, None),
    "units of three rows": (UNITS, None, 2.0, None),
    "units and moments by class": (UNITS, "income", 90.0, 3),
    "named questions": (tables.SCHEMA_TEXT + QUESTIONS, None, 2.0, None),
    "named questions of units": (UNITS + QUESTIONS, None, 2.0, None),
}  # fmt: skip
PEOPLE = {  # rows of one unit, of which three count
    "odd": [CORNER, {**CORNER, "income": "?", "sex": None}, {**CORNER, "weight": np.inf}, {**CORNER, "age": -(10**6)}],
    "far": [{**CORNER, "grade": "high", "age": 0, "weight": -np.inf, "income": "<=50K"}],
    "like": [tables.frame(300).iloc[299].to_dict()] * 5,
}


def with_people(frame: pd.DataFrame, records: list[dict], name: int = 10**6) -> pd.DataFrame:
    """The frame with one unit more."""
    rows = pd.DataFrame([{**record, "id": name} for record in records])[list(frame.columns)]
    return pd.concat([frame, rows], ignore_index=True).astype({"grade": object, "age": np.int64, "id": np.int64})


@pytest.mark.parametrize("bought", [False, True])
@pytest.mark.parametrize("frame", [BASE, BASE[:1], BASE[:0]], ids=["70 rows", "1 row", "no row"])
def test_max_entropy_tables_of_much_noise(monkeypatch, frame, bought):
    """No target: all rows' vectors have the same entry. Bounds are not apart. Both by public or bought facts alone."""
    statistics = []
    moments = tables_module.TableMoments

    def seen(grid, vectors, *arguments, **options):
        statistics.append((grid, vectors))
        return moments(grid, vectors, *arguments, **options)

    monkeypatch.setattr(tables_module, "TableMoments", seen)

    def fit(data):
        release = MaxEntropy(epsilon=1.0, delta=1e-6, calibration_rows=100).fit(
            data, schema=tables.schema(), n_public=EstimateCount() if bought else 240, seed=1
        )
        return leaves(release)

    base = with_record(RECORDS["an ordinary one"], frame)
    attack(monkeypatch, fit, frame.astype(base.dtypes.to_dict()), base)
    attack(monkeypatch, fit, base, with_record(CORNER, base))
    attack(monkeypatch, fit, base, with_record(CORNER, base, len(base) - 1), replaced=True)
    for grid, vectors in statistics:
        numbers = [column for column in grid.columns if column.numeric]
        assert all(set(column.alone.values()) <= set(single_codes(column.kind)) for column in numbers)  # no bound
        assert len(vectors) == len(grid.columns) + 1
        assert vectors[-1].shape == (1, 1)
        assert vectors[-1] > 0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("table", "people"), diagonal(MAX_ENTROPY_TABLES, PEOPLE))
def test_max_entropy_tables(monkeypatch, table, people):
    """With and without target and unit, with much noise and little, and where there is nothing to see."""
    text, target, epsilon, classes = MAX_ENTROPY_TABLES[table]
    schema = tables.read_schema(text)
    records = PEOPLE[people] if schema.unit else PEOPLE[people][:1]
    found, moments = [], tables_module.TableMoments

    def seen(*arguments, **options):
        statistic = moments(*arguments, **options)
        found.append(None if statistic.leading is None else statistic.leading.n_classes)
        return statistic

    monkeypatch.setattr(tables_module, "TableMoments", seen)

    def fit(data):
        release = MaxEntropy(epsilon=epsilon, calibration_rows=100).fit(
            data[list(schema.columns)], schema=schema, target=target, n_public=4_000, seed=1
        )
        return leaves(release)

    base = with_people(BASE.assign(id=np.arange(len(BASE)) // 2), [RECORDS["an ordinary one"]], 10**5)
    attack(monkeypatch, fit, base, with_people(base, records))
    other = with_people(base, PEOPLE["far" if people != "far" else "odd"][: len(records)])
    nearest = attack(monkeypatch, fit, with_people(base, records), other, replaced=True)
    assert nearest > 0 or schema.columns.keys() <= {"id", "age", "income"}
    assert set(found) == {classes}


IMAGE_METHODS = {
    **{name: QUICK[name] for name in ("max-entropy", "p3gm", "dpgm", "dpgm, machines", "dp-vae")},
    "max-entropy, training": partial(MaxEntropy, purpose=Training()),
    **DATA_SETS,
    **PLUGINS,
}


@pytest.mark.parametrize("method", parts(IMAGE_METHODS))
def test_images(monkeypatch, method):
    skip_refused(method, tables.image_schema())
    pixels, labels = tables.images(60)
    lone = (np.concatenate([pixels, 255 - pixels[:1]]), np.append(np.minimum(labels, 1), 2))
    without = (lone[0][:-1], lone[1][:-1])

    def fit(data):
        return leaves(IMAGE_METHODS[method](epsilon=2.0).fit(data, schema=tables.image_schema(), seed=1))

    attack(monkeypatch, fit, without, lone)
    other = (np.concatenate([pixels, pixels[:1]]), np.append(np.minimum(labels, 1), 0))
    attack(monkeypatch, fit, lone, other, replaced=True)


SETS = Schema.from_dict({"rows": 60, "columns": {"items": {"kind": "set", "n_items": 8, "max_length": 4}}})
SET_METHODS = {
    "independent-items": IndependentItems,
    "latent-classes": partial(LatentClasses, n_classes=2),
    "dpgm": partial(DPGM, component=VAE(hidden=(8,), latent_dim=2), **MIXED),
    "dpgm, machines": partial(DPGM, component=RBM(hidden=6, n_chains=3, burn_in=3), **MIXED),
    **PLUGINS,
}


@pytest.mark.parametrize("method", parts(SET_METHODS))
def test_sets(monkeypatch, method):
    skip_refused(method, SETS)
    rng = np.random.default_rng(0)
    sets = [np.flatnonzero(rng.random(8) < 0.3)[:4].tolist() for _ in range(60)]

    def fit(data):
        return leaves(SET_METHODS[method](epsilon=2.0).fit(pa.table({"items": data}), schema=SETS, seed=1))

    for more in ([0, 1, 2, 3, 4, 5, 6, 7], []):
        attack(monkeypatch, fit, sets, [*sets, more])
        attack(monkeypatch, fit, [*sets, more], [*sets, [7]], replaced=True)


@pytest.mark.parametrize("town", ["Riga", "Xanthippe"])
def test_discovery(monkeypatch, town):
    """A word of one record's own is left to the additive δ: here the threshold is far above it."""
    frame = pd.DataFrame({"age": np.arange(200) % 70, "town": ["Riga", "Oslo"] * 100})
    more = pd.concat([frame, pd.DataFrame({"age": [10**9], "town": [town]})], ignore_index=True)

    def fit(data):
        opened = OpenSchema.of(open_source(frame), {"town": "categorical", "age": "integer"}, rows=200)
        return leaves(MaxEntropy(epsilon=8.0).fit(data, schema=opened, seed=1))

    attack(monkeypatch, fit, frame, more)


def test_discovery_of_units(monkeypatch):
    """A unit with many rows moves what is found as one row does, whichever of them is read."""
    frame = pd.DataFrame({"who": np.arange(300) // 3, "age": np.arange(300) % 70, "town": ["Riga", "Oslo"] * 150})
    more = pd.concat([frame, pd.DataFrame({"who": [999] * 3, "age": [10**9, 1, 3], "town": "Riga"})], ignore_index=True)
    columns = {"who": {"kind": "identifier"}, "age": {"kind": "integer", "discover": True}}
    columns["town"] = {"kind": "categorical", "discover": True}
    opened = OpenSchema.from_dict({"rows": 300, "unit": {"column": "who", "max_rows": 3}, "columns": columns})

    def fit(data):
        return leaves(MaxEntropy(epsilon=8.0).fit(data, schema=opened, seed=1))

    attack(monkeypatch, fit, frame, more)


def test_a_bought_count(monkeypatch):
    def fit(data):
        method = MaxEntropy(epsilon=2.0, delta=1e-6)
        return leaves(method.fit(data, schema=tables.schema(), n_public=EstimateCount(), target="income", seed=1))

    attack(monkeypatch, fit, with_record(CORNER), with_record(CORNER, with_record(CORNER)))


PUBLIC = {"epsilon": 2.0, "n_public": 60, "bounds": (-1.0, 1.0), "seed": 1}
ESTIMATORS = {
    "mixture": DPGaussianMixture(2, **PUBLIC),
    "factors": DPFactorAnalysis(1, **PUBLIC),
    "k-means": DPKMeans(2, **PUBLIC),
    "kernel k-means": DPKernelKMeans(2, n_features=20, **PUBLIC),
}


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("odd", [np.array([50.0, -50.0, 1.0]), np.full(3, np.nan)], ids=["outside", "no number"])
def test_estimators(monkeypatch, estimator, odd):
    points = np.random.default_rng(0).uniform(-1, 1, (60, 3))

    def fit(data):
        fitted = ESTIMATORS[estimator].fit(data)
        found = {name: value for name, value in vars(fitted).items() if isinstance(value, np.ndarray)}
        return found | {f"release {i}": noisy.value for i, noisy in enumerate(fitted.releases_)}

    attack(monkeypatch, fit, points, np.vstack([points, odd]))
    attack(monkeypatch, fit, np.vstack([points, odd]), np.vstack([points, -points[:1]]), replaced=True)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_estimators_of_units(monkeypatch, estimator):
    """A unit of more rows than count, all alike, comes; and takes the place of one whose rows are opposite."""
    points, units = np.random.default_rng(0).uniform(-1, 1, (60, 3)), np.arange(60) // 2

    def fit(data):
        fitted = ESTIMATORS[estimator].fit(data[:, :3], units=data[:, 3].astype(int), max_rows=3)
        found = {name: value for name, value in vars(fitted).items() if isinstance(value, np.ndarray)}
        return found | {f"release {i}": noisy.value for i, noisy in enumerate(fitted.releases_)}

    def of_unit(point):
        return np.hstack([np.tile(point, (5, 1)), np.full((5, 1), 99)])

    base, corner = np.column_stack([points, units]), np.ones(3)
    nearest = attack(monkeypatch, fit, base, np.vstack([base, of_unit(corner)]))
    assert nearest > 0.4  # three rows alike use up most of what three may add
    attack(monkeypatch, fit, np.vstack([base, of_unit(corner)]), np.vstack([base, of_unit(-corner)]), replaced=True)


def test_every_method_is_attacked():
    makes = [*TABLE_METHODS.values(), *IMAGE_METHODS.values(), *SET_METHODS.values()]
    attacked = {(make.func if isinstance(make, partial) else make).method for make in makes}
    assert attacked == {name for name, method in OWN.items() if method.private} | PLUGINS.keys()


def test_every_plugin_fits_something():
    """The other tests skip what it refuses."""
    for method in TABLE_METHODS:
        assert not all(refusal(method, schema) for schema in (tables.schema(), tables.image_schema(), SETS)), method


class TestItCanFail:
    """The attack finds what a wrong recipe lets out."""

    def fit(self, data):
        return leaves(MaxEntropy(epsilon=2.0).fit(data, schema=tables.schema(), target="income", seed=1))

    def test_a_statistic_that_is_too_large(self, monkeypatch):
        add = CellCounts.add

        def twice(self, total, rows):
            add(self, total, rows)
            add(self, total, rows)

        monkeypatch.setattr(CellCounts, "add", twice)
        with pytest.raises(AssertionError, match="times as far apart"):
            attack(monkeypatch, self.fit, with_record(CORNER), with_record(CORNER, with_record(CORNER)))

    def test_a_true_number_that_reaches_the_release(self, monkeypatch):
        run = max_entropy.MaxEntropy.run

        def leaking(self, fit):
            fitted = run(self, fit)
            n = sum(len(rows["age"]) for rows in fit.data.coded())
            parameters = {**fitted.parameters, "weights": fitted.parameters["weights"] + 1e-9 * n}
            return max_entropy.FittedModel(fitted.sampler, parameters, fitted.measurements)

        monkeypatch.setattr(max_entropy.MaxEntropy, "run", leaking)
        with pytest.raises(AssertionError, match="depends on more"):
            attack(monkeypatch, self.fit, with_record(CORNER), with_record(CORNER, with_record(CORNER)))
