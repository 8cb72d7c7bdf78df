"""The page: what it says, that nothing of a stranger's schema gets out of its place, and basics of accessibility."""

import dataclasses
import functools
import html.parser
import itertools
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fixtures import tables
from fixtures.sampling import small_simulations
from sfumato import DPMix, IndependentItems, MaxEntropy, NonPrivate, tune
from sfumato.errors import ConfigError, OutputError
from sfumato.evaluate import total_variation
from sfumato.evaluate.coded_tables import CodedTable
from sfumato.evaluate.fidelity import read_bins
from sfumato.io.sources import open_source
from sfumato.privacy import words
from sfumato.privacy.certificate_form import Protected
from sfumato.privacy.words import shown
from sfumato.release_front import load
from sfumato.report import write as writing
from sfumato.report import write_report
from sfumato.report.columns import column_figures, pair_figures, set_content
from sfumato.report.estimates import PairLine
from sfumato.report.page import marked
from sfumato.report.uses import verdicts
from sfumato.schema.schema import Schema

__all__ = ["small_simulations"]

HOSTILE = "<script>alert('x')</script>\"' onload=\"alert(1)\" </style> {{ 7 * 7 }} \u202eevil"
VOID = {"meta", "rect", "img", "br", "link", "input"}


class Page(html.parser.HTMLParser):
    """Tags with attributes and text; unbalanced tags are an error."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags, self.open, self.texts = [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join("".join(self.texts).split())

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def release():
    return MaxEntropy(epsilon=1.0).fit(tables.frame(), schema=tables.schema(), target="income")


@pytest.fixture(scope="module")
def pages(release, tmp_path_factory):
    """The two variants: `public`, and `real` with scores."""
    folder = tmp_path_factory.mktemp("pages")
    write_report(release, folder / "public.html")
    write_report(release, folder / "real.html", real=tables.frame(), test=tables.frame(120, seed=1))
    return {name: (folder / f"{name}.html").read_text(encoding="utf-8") for name in ("public", "real")}


@pytest.fixture(params=["public", "real"])
def page(request, pages):
    return Page(pages[request.param])


def test_a_stranger_finds_the_answers(pages, release):
    text = Page(pages["real"]).text
    figures = column_figures(*_bins(release), tables.schema())
    assert f"The column that is worst {figures[0].name}:" in text
    for needed in ("What was released", "Who is protected Each single row", "epsilon = 1, delta = 1e-05", "AUROC",
                   "How much accuracy is lost", "NOT PRIVATE", "marginals (50 %)", "is added or removed"):  # fmt: skip
        assert needed in text, needed
    assert "2.72 times as likely" in text
    assert "73 %" in text
    for name in tables.RELEASED:
        assert name in text


def _bins(release):
    from sfumato.evaluate.fidelity import read_bins
    from sfumato.io.sources import open_source

    sample = release.sample(len(tables.frame()), seed=0)
    return [read_bins(open_source(frame), tables.schema()) for frame in (sample, tables.frame())]


def test_the_public_page_is_made_from_the_release_alone(pages, release, tmp_path):
    text = Page(pages["public"]).text
    assert "may be published" in text
    assert "made from real records" not in text
    release.save(tmp_path / "r.sfm")
    write_report(tmp_path / "r.sfm", tmp_path / "again.html")
    again, page = (tmp_path / "again.html").read_text(encoding="utf-8"), pages["public"]
    checked = load(tmp_path / "r.sfm").checked
    assert again != page  # what was checked: of a release in memory, nothing
    for line in (*words.checked(checked), *words.checked(release.checked)):
        assert line in again + page
        again, page = again.replace(f"<p>{line}</p>", ""), page.replace(f"<p>{line}</p>", "")
    assert again == page


def test_a_seeded_release_is_called_not_private(tmp_path):
    seeded = MaxEntropy(epsilon=1.0).fit(tables.frame(), schema=tables.schema(), seed=0)
    write_report(seeded, tmp_path / "p.html")
    text = Page((tmp_path / "p.html").read_text(encoding="utf-8")).text
    assert "The release itself is NOT PRIVATE" in text
    assert "may be published" not in text
    assert "2.72 times" not in text


def test_figures_are_total_variations(release):
    bins = _bins(release)
    schema = tables.schema()
    frames = release.sample(240, seed=0), tables.frame()
    columns = column_figures(*bins, schema)
    mean = np.mean([c.distance for c in columns])
    assert mean == pytest.approx(total_variation(frames[1], frames[0], schema=schema, k=1))
    assert [c.distance for c in columns] == sorted((c.distance for c in columns), reverse=True)
    for column in columns:
        assert sum(b.synthetic for b in column.bins) == pytest.approx(1)
        assert 0.5 * sum(abs(b.synthetic - b.real) for b in column.bins) == pytest.approx(column.distance)
    pairs, n = pair_figures(*bins, schema)
    assert n == len(pairs) == 21
    assert np.mean([p.distance for p in pairs]) == pytest.approx(total_variation(*frames, schema=schema, k=2))
    for pair in pairs[:3]:
        assert pair.differences.shape == tuple(map(len, pair.labels))
        assert 0.5 * np.abs(pair.differences).sum() == pytest.approx(pair.distance)


@pytest.mark.slow
def test_many_levels_are_merged(tmp_path):
    kinds = {"x": {"kind": "categorical", "categories": [f"c{i}" for i in range(300)]}, "b": {"kind": "boolean"}}
    schema = Schema.from_dict({"columns": kinds, "rows": 200})
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": [f"c{i}" for i in rng.integers(0, 300, 200)], "b": rng.random(200) < 0.5})
    release = MaxEntropy(epsilon=1.0).fit(frame, schema=schema)
    write_report(release, tmp_path / "p.html", real=frame)
    assert "all others" in (tmp_path / "p.html").read_text(encoding="utf-8")


def test_nothing_of_a_hostile_schema_leaves_its_place(tmp_path, pages):
    kinds = {
        HOSTILE: {"kind": "categorical", "categories": [HOSTILE, "b"]},
        "</bdi></main><img src=x onerror=alert(1)>": {"kind": "boolean"},
    }
    schema = Schema.from_dict({"columns": kinds, "rows": 100})
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {HOSTILE: np.array([HOSTILE, "b"])[rng.integers(0, 2, 100)], list(kinds)[1]: rng.random(100) < 0.5}
    )
    release = MaxEntropy(epsilon=1.0).fit(frame, schema=schema, target=HOSTILE)
    for real in (None, frame):
        write_report(release, tmp_path / "p.html", real=real, overwrite=True)
        text = (tmp_path / "p.html").read_text(encoding="utf-8")
        page = Page(text)
        assert not page.all("script")
        assert not page.all("img")
        assert not [key for _, attributes in page.tags for key in attributes if key.startswith("on")]
        assert {tag for tag, _ in page.tags} <= {tag for tag, _ in Page(pages["real"]).tags}
        assert text.count("</style>") == 1
        assert "\u202e" not in text
        assert "{{ 7 * 7 }}" in page.text  # shown as it is, not worked out
        assert "<script>alert('x')</script>" in page.text


def test_text_for_a_page():
    assert shown("a\x00b\u202e\n") == "a�b��"
    assert len(shown("x" * 500)) == 80


def test_it_needs_no_network_and_runs_nothing(page, pages):
    for tag, attributes in page.tags:
        for key in ("src", "href", "xlink:href", "action", "data"):
            assert attributes.get(key, "#").startswith(("#", "data:")), (tag, key)
    for text in pages.values():
        assert not re.search(r"https?:|url\(|@import|javascript:", text)
    assert not page.all("script")
    assert "default-src 'none'" in page.all("meta")[1]["content"]


def test_basics_of_accessibility(page):
    assert page.all("html") == [{"lang": "en"}]
    for landmark in ("header", "nav", "main", "footer", "h1", "title"):
        assert len(page.all(landmark)) == 1, landmark
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    for attributes in page.all("svg"):
        assert attributes.get("aria-label") or "viewbox" in attributes
    assert all(a.get("scope") in {"col", "row"} for a in page.all("th"))
    assert all(a.get("alt") for a in page.all("img"))
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    for _, a in page.tags:
        assert a.get("href", "#main")[1:] in {*ids, "main"}
        assert a.get("aria-labelledby", ids[0]) in ids
    style = page.text
    for rule in ("prefers-color-scheme: dark", "@media print", "focus-visible", "max-width: 30rem"):
        assert rule in style


def test_pictures(tmp_path):
    arrays = tables.images()
    release = MaxEntropy(epsilon=5.0).fit(arrays, schema=tables.image_schema())
    write_report(release, tmp_path / "p.html")
    found = Page((tmp_path / "p.html").read_text(encoding="utf-8")).all("img")
    assert [a["alt"] for a in found] == [f"8 samples of class {i}, drawn from the release" for i in range(3)]
    assert all(a["src"].startswith("data:image/png;base64,") for a in found)
    pytest.importorskip("torch", reason="networks need the extra nets")
    write_report(release, tmp_path / "p.html", real=arrays, overwrite=True)
    assert (
        "A network that learns from synthetic pictures" in Page((tmp_path / "p.html").read_text(encoding="utf-8")).text
    )


@functools.cache
def _sets():
    items = {"kind": "set", "items": ["a", "b", "c", HOSTILE], "max_length": 3}
    schema = Schema.from_dict({"rows": 90, "columns": {"s": items}})
    frame = pa.table({"s": [["a"], ["a", "b"], ["c", "a", "b"]] * 30})
    return IndependentItems(epsilon=1.0).fit(frame, schema=schema), frame


def _mixed_images():
    arrays = tables.images()
    return DPMix(epsilon=1.0, mixture_degree=4, n_mixtures=30).fit(arrays, schema=tables.image_schema()), arrays


@functools.cache
def _mixed_rows():
    method = DPMix(epsilon=NonPrivate(), mixture_degree=4, n_mixtures=60)  # its account takes a while
    frame = tables.frame()
    return method.fit(frame, schema=tables.schema(), target="income"), frame


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_sets, "Of the pairs of the 4 commonest items"),
        pytest.param(_mixed_images, "A linear classifier that learns", marks=pytest.mark.slow),
        (_mixed_rows, "A linear classifier of income"),
    ],
)
def test_sets_and_mixtures_have_both_pages(make, said, tmp_path):
    release, real = make()
    write_report(release, tmp_path / "p.html")
    text = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "Each single row" in Page(text).text
    assert not Page(text).all("img")
    assert said not in Page(text).text
    write_report(release, tmp_path / "q.html", real=real)
    page = Page((tmp_path / "q.html").read_text(encoding="utf-8"))
    assert said in page.text
    assert "NOT PRIVATE" in page.text
    assert not page.all("script")
    assert "<script>alert" not in (tmp_path / "q.html").read_text(encoding="utf-8")


def test_the_page_of_sets_says_what_the_sets_are(tmp_path):
    release, real = _sets()
    figures = {
        f.name: f for f in set_content(release.sample(90, seed=0), real, schema=release.schema, seed=0)["columns"]
    }
    lengths, items = figures["s: how many items"], figures["s: which items"]
    assert [b.real for b in lengths.bins] == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3])
    assert [b.real for b in items.bins] == pytest.approx([0.5, 1 / 3, 1 / 6, 0])
    for figure in (lengths, items):
        assert figure.distance == pytest.approx(0.5 * sum(abs(b.real - b.synthetic) for b in figure.bins))
    alone = set_content(release.sample(90, seed=0), None, schema=release.schema, seed=0)
    assert all(b.real is None for f in alone["columns"] for b in f.bins)
    assert "queries" not in alone


def test_sets_have_no_test_rows_and_no_target(tmp_path):
    release, real = _sets()
    for given in ({"test": real}, {"target": "s"}):
        with pytest.raises(ConfigError, match="sets"):
            write_report(release, tmp_path / "q.html", real=real, **given)


class TestCommand:
    @pytest.fixture
    def saved(self, release, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        release.save("r")
        tables.write_csv(tmp_path / "people.csv")
        return tmp_path

    def test_both_variants(self, saved, call):
        result = call("report", "r", "--out", "p.html")
        assert (result.code, "release alone" in result.out) == (0, True)
        assert call("report", "r", "--out", "p.html").code == 2  # it exists
        assert Page((saved / "p.html").read_text(encoding="utf-8")).all("main")

    @pytest.mark.parametrize(
        ("options", "named"),
        [
            (("--test", "people.csv"), "--real"),
            (("--target", "income"), "--real"),
            (("--out", "p.txt"), ".html"),
            (("--real", "people.csv", "--target", "age"), "target='age'"),
            (("--real", "nothing.csv"), "nothing.csv"),
        ],
    )
    def test_wrong_calls(self, saved, call, options, named):
        result = call("report", "r", "--out", "p.html", *options)
        assert result.code in {1, 2}
        assert named in result.err
        assert not list(saved.glob("*p.*"))


def test_a_page_that_cannot_be_finished_leaves_what_was_there(release, tmp_path, monkeypatch):
    (tmp_path / "p.html").write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError):
        write_report(release, tmp_path / "p.html")

    def fail(content):
        raise ConfigError("no")

    monkeypatch.setattr(writing, "render", fail)
    with pytest.raises(ConfigError):
        write_report(release, tmp_path / "p.html", overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["p.html"]
    assert (tmp_path / "p.html").read_text(encoding="utf-8") == "mine"


def test_what_does_not_fit_the_schema_is_said(release, tmp_path):
    frame = tables.frame()
    odd = frame.assign(sex=["x"] * 60 + list(frame["sex"][60:]))
    write_report(release, tmp_path / "p.html", real=odd)
    text = Page((tmp_path / "p.html").read_text(encoding="utf-8")).text
    assert "Cells of 1 column of the real rows, most of sex (25.0 %)" in text
    assert "not in the schema" in text
    write_report(release, tmp_path / "q.html", real=frame)
    assert "not in the schema" not in (tmp_path / "q.html").read_text(encoding="utf-8")


def test_scores_on_the_released_rows_are_said_to_flatter(release, tmp_path):
    write_report(release, tmp_path / "p.html", real=tables.frame())
    assert Page((tmp_path / "p.html").read_text(encoding="utf-8")).text.count("flatters") == 2


@pytest.mark.parametrize("kind", [
    {"kind": "continuous", "lower": 0, "upper": 1e-310},
    {"kind": "continuous", "lower": -8e307, "upper": 8e307},
    {"kind": "continuous", "lower": 1e15, "upper": 1e15 + 20},
    {"kind": "datetime", "lower": "2020-01-01", "upper": "2020-01-01 00:00:05", "resolution": "millisecond"},
])  # fmt: skip
def test_cells_of_any_width_have_labels_of_their_own(kind):
    schema = Schema.from_dict({"columns": {"x": kind}})
    codes = CodedTable(columns={"x": np.zeros(3, dtype=np.uint8)}, n_rows=3)
    labels = [b.label for b in column_figures(codes, None, schema)[0].bins]
    assert len(labels) == len(set(labels)) == 20


@pytest.mark.parametrize(("lower", "upper", "nullable"), [(0, 12, True), (-3, 70, False), (5, 5, True), (0, 20, False)])
def test_cells_of_whole_numbers_are_named_by_those_they_hold(lower, upper, nullable):
    kind = {"kind": "integer", "lower": lower, "upper": upper, "nullable": nullable}
    schema = Schema.from_dict({"columns": {"x": kind}})
    values = range(lower, upper + 1)
    for value in values:
        table = read_bins(open_source(pa.table({"x": [value] * 4})), schema)
        bins = column_figures(table, table, schema)[0].bins
        (label,) = (b.label for b in bins if b.synthetic == 1 == b.real)
        first, _, last = label.partition(" to ")
        assert int(first) <= value <= int(last or first)
    held = [label for label in (b.label for b in bins) if label != "missing"]
    assert len(held) == min(20, len(values))
    assert held[0].startswith(str(lower))
    assert held[-1].endswith(str(upper))


def test_the_worst_of_sets_is_first():
    schema = Schema.from_dict({"columns": {"s": {"kind": "set", "items": ["a", "b"], "max_length": 2}}})
    first, second = pa.table({"s": [["a"]] * 5}), pa.table({"s": [["b"]] * 5})
    figures = set_content(first, second, schema=schema, seed=0)["columns"]
    assert [f.distance for f in figures] == [1.0, 0.0]
    empty = set_content(first, pa.table({"s": pa.array([[]] * 5, pa.list_(pa.string()))}), schema=schema, seed=0)
    assert [f.distance for f in empty["columns"]] == [1.0, 1.0]
    assert not any(b.real for f in empty["columns"] if f.kind == "items" for b in f.bins)


@pytest.mark.slow
def test_the_command_line_says_the_same(release, tmp_path, monkeypatch, call):
    """Of one release: every figure and sentence about its cost is on the page and on the screen."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")
    release.save("r")
    write_report(release, tmp_path / "p.html")
    page, screen = Page((tmp_path / "p.html").read_text(encoding="utf-8")).text, call("certificate", "r").out
    same = [words.cost(release.certificate), words.replaced(release.certificate), *release.certificate.assumptions]
    for stage in words.stages(release.certificate):
        same += [stage.name, stage.noise_multiplier, stage.epsilon_alone]
        assert stage.event in page
        assert stage.brief in screen
    for said in same:
        assert said.replace("`", "") in page, said
        assert said in screen, said
    seeded = dataclasses.replace(release, certificate=dataclasses.replace(release.certificate, private=False))
    seeded.save("s")
    write_report("s", tmp_path / "q.html")
    warning = words.meaning(seeded.certificate)[0]
    assert f"NOT PRIVATE. {warning}" in Page((tmp_path / "q.html").read_text(encoding="utf-8")).text
    assert f"NOT PRIVATE. {warning}" in call("certificate", "s").out


def test_a_stranger_cannot_turn_the_direction_of_a_sentence(release):
    unit = Protected(name="\u202egro.live" + "U" * 200, max_rows=2)
    certificate = dataclasses.replace(release.certificate, unit=unit)
    for text in (words.who(certificate), words.relation(certificate), words.guarantee(certificate), repr(certificate)):
        assert "\u202e" not in text
        assert "U" * 100 not in text
    assert words.sentence("\u2066" + "a" * 3_000) == "�" + "a" * 998 + "…"
    assert shown("نام\u200cخانوادگی") == "نام\u200cخانوادگی"


def test_code_in_a_sentence_is_escaped_like_all_of_it():
    assert marked("set `unit` <b>") == "set <code>unit</code> &lt;b&gt;"
    hostile = marked(f"`{HOSTILE}` `` ` {HOSTILE}")
    assert "<" not in re.sub("</?code>", "", hostile)
    assert "\u202e" not in hostile


@pytest.mark.slow
def test_repeated_stages_are_marked(tmp_path):
    settings = {"epsilon": 2.0, "calibration_rows": 200}
    candidates = [MaxEntropy(marginal_share=share, **settings) for share in (0.3, 0.5)]
    criteria = [{"marginal_error": 0.95}]
    release = tune(tables.frame(), method=candidates, schema=tables.schema(), seed=0, accept=criteria, n_public=1_000)
    write_report(release, tmp_path / "p.html")
    text = Page((tmp_path / "p.html").read_text(encoding="utf-8")).text
    assert "* Gaussian noise" in text
    assert "were repeated" in text
    assert "marginal_share" in text
    assert "Criterion marginal_error <= 0.95: passed (noisy value" in text


def test_mixtures_have_no_other_target(tmp_path):
    release, real = _mixed_rows()
    with pytest.raises(ConfigError, match="target='age'"):
        write_report(release, tmp_path / "q.html", real=real, target="age")


def test_a_verdict_for_each_use_and_others_epsilon(pages, release):
    text = Page(pages["public"]).text
    for use in ("tables of counts, shares and means", "correlations and regressions", "training a classifier"):
        assert use in text
    assert "Every row keeps the schema: types, bounds, labels." in text
    others = text[text.index("Its ε among those of others") :]
    assert others.index("this release") < others.index("US Census 2020")
    assert "What it is good for" not in Page(pages["real"]).text  # scores say it there
    lines = [PairLine((name, "income"), "Cramér’s V", 0.4, 0.35, 0.45) for name in ("a", "b", "c")]
    answered = pd.DataFrame(
        [
            {"kind": "share", "first": "a", "answered": "yes", "value": np.nan, "std_error": 0.004},
            {"kind": "mean", "first": "x", "answered": "yes", "value": 3.0, "std_error": 0.02},
            {"kind": "variance", "first": "x", "answered": "yes", "value": 4.0, "std_error": 0.1},
            {"kind": "correlation", "first": "x", "answered": "yes", "value": 0.4, "std_error": 0.05},
        ]
    )
    found = verdicts(answered, lines, "income", rules=True)
    assert [verdict.word for verdict in found] == ["good", "with care", "good", "good"]
    noisy = answered.assign(std_error=answered["std_error"] * 30)
    found = verdicts(noisy, lines[:1], None, rules=False)
    assert [verdict.word for verdict in found] == ["poor", "poor", "not measured", "good"]
    assert verdicts(noisy, [], "income", rules=False)[2].word == "poor"
