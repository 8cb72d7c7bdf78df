"""`sfumato model tune`: grids and lists of candidates, the ledger, and what is printed."""

import numpy as np
import pytest

from fixtures import tables
from sfumato.maths.constants import CHAIN
from sfumato.release_front import load
from sfumato.search import acceptance, pair_scores, tuning


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(vars(CHAIN), "simulated", 500)
    monkeypatch.setattr(pair_scores, "_SAMPLES", 2_000)
    monkeypatch.setattr(tuning, "drawn_repetitions", lambda law, noise: 2)
    tables.write_csv(tmp_path / "people.csv")
    (tmp_path / "schema.yaml").write_text(tables.SCHEMA_TEXT, encoding="utf-8")
    return tmp_path


CALL = ("model", "tune", "people.csv", "--schema", "schema.yaml", "--epsilon", 1, "--delta", 1e-6)


def test_a_grid_against_a_ledger(folder, call):
    assert call("ledger", "create", "people.ledger", "--epsilon", 1.5, "--delta", 1e-6).code == 0
    grid = ("--grid", "marginal_share=0.3,0.5", "--grid", "level-groups=16,64")
    done = call(*CALL, *grid, "--target", "income", "--ledger", "people.ledger", "--out", "best.sfm")
    assert done.code == 0
    assert "Chosen of 4 candidates: max-entropy: marginal_share=0." in done.out
    assert "10 times on average" in done.out
    release = load("best.sfm")
    assert release.certificate.private
    shown = call("ledger", "show", "people.ledger", "--json").json
    (entry,) = shown["fits"]
    assert (entry["method"], entry["status"]) == ("tune", "finished")
    assert entry["events"][-1]["repetitions"] == {"mean": 10.0, "shape": 1.0}
    assert 0.99 < shown["spent"]["epsilon"] <= 1
    certificate = call("certificate", "best.sfm")
    assert certificate.code == 0
    assert "Computed again with RdpAccountant" in certificate.out
    assert call("sample", "best.sfm", "-n", 10, "--out", "rows.csv").code == 0
    refused = call(*CALL, *grid, "--ledger", "people.ledger", "--out", "second.sfm")
    assert refused.code == 1
    assert "can pay for" in refused.err
    assert not (folder / "second.sfm").exists()


def test_a_list_of_candidates_and_how_often_is_not_told(folder, call, monkeypatch):
    (folder / "tries.yaml").write_text("- {marginal_share: 0.3}\n- {marginal_share: 0.5, purpose: training}\n")
    lengths = set()
    for repetitions in (1, 3):
        monkeypatch.setattr(tuning, "drawn_repetitions", lambda law, noise, k=repetitions: k)
        options = ("--repetitions", 4, "--shape", 0, "--seed", 1, "--out", "best.sfm", "--overwrite")
        done = call(*CALL, "--candidates", "tries.yaml", *options)
        assert done.code == 0
        assert "NOT private" in done.out
        before, _, columns = done.out.partition("\nColumns")  # the lines of its columns follow from the release
        assert columns
        lengths.add((before.count("\n"), done.err.count("\n")))
    assert len(lengths) == 1


def test_one_fit_is_judged_by_the_schema(folder, call, monkeypatch):
    monkeypatch.setattr(acceptance, "_SAMPLES", 8_192)
    (folder / "schema.yaml").write_text(
        tables.SCHEMA_TEXT + "accept:\n  - {marginal_error: 0.9}\n  - {auroc: 0.01, target: income}\n", encoding="utf-8"
    )
    judged = ("--repetitions", 1, "--accept-share", 0.3, "--rows", 1000)
    done = call(*CALL, *judged, "--target", "income", "--out", "good.sfm")
    assert done.code == 0
    assert "Criterion marginal_error <= 0.9: passed (noisy value" in " ".join(done.out.split())
    shown = call("certificate", "good.sfm")
    assert "Criterion auroc for income >= 0.01: passed" in " ".join(shown.out.split())
    verdicts = call("certificate", "good.sfm", "--json").json["search"]["verdicts"]
    assert [verdict["passed"] for verdict in verdicts] == [True, True]
    refused = call("fit", "people.csv", "--schema", "schema.yaml", "--epsilon", 1, "--out", "fit.sfm")
    assert refused.code == 2
    assert "--repetitions 1" in refused.err


def test_where_no_fit_passes_the_verdicts_alone_are_told_and_the_code_is_3(folder, call, monkeypatch):
    monkeypatch.setattr(acceptance, "_SAMPLES", 8_192)
    (folder / "accept.yaml").write_text("- {auroc: 0.999999, target: income}\n")
    assert call("ledger", "create", "people.ledger", "--epsilon", 1.5, "--delta", 1e-6).code == 0
    done = call(*CALL, "--grid", "marginal_share=0.3,0.5", "--accept", "accept.yaml", "--ledger", "people.ledger",
                "--out", "best.sfm")  # fmt: skip
    assert done.code == 3
    told = " ".join(done.err.split())
    assert "The budget is spent, and nothing is released but the verdicts" in told
    assert "Criterion auroc for income >= 0.999999: FAILED (noisy value" in told
    assert "Traceback" not in done.err
    assert not (folder / "best.sfm").exists()
    assert call("ledger", "show", "people.ledger", "--json").json["spent"]["epsilon"] > 0.99
    assert call("ledger", "create", "other.ledger", "--epsilon", 1.5, "--delta", 1e-6).code == 0
    (folder / "accept.yaml").write_text("- {auroc: 2, target: income}\n")
    refused = call(*CALL, "--accept", "accept.yaml", "--ledger", "other.ledger", "--out", "best.sfm")
    assert refused.code == 2
    assert "Criterion 1 of accept: Expected auroc between 0 and 1" in refused.err
    assert not call("ledger", "show", "other.ledger", "--json").json["fits"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "neither"),
        (("--grid", "marginal_share"), "KEY=V1"),
        (("--grid", "marginal_share=0.3", "--grid", "marginal_share=0.4"), "twice"),
        (("--grid", "shares=0.3"), "marginal_share"),
        (("--grid", "marginal_share=much"), "marginal_share"),
        (("--grid", "purpose=fun"), "fidelity"),
        (("--grid", "epsilon=1,2"), "settings of the method"),
        (("--grid", "marginal_share=0.3", "--method", "pgm"), "--method"),
        (("--grid", "marginal_share=0.3", "--repetitions", "0"), "mean_repetitions"),
        (("--candidates", "schema.yaml"), "list of mappings"),
        (("--candidates", "nothing.yaml"), "nothing.yaml"),
    ],
)
def test_wrong_calls(folder, call, arguments, said):
    done = call(*CALL, *arguments, "--out", "best.sfm")
    assert done.code == 2
    assert said in done.err
    assert not (folder / "best.sfm").exists()


SETS = "rows: 4\ncolumns:\n  items: {kind: set, n_items: 6, max_length: 5}\n"
OTHERS = {
    "images": (tables.IMAGE_SCHEMA_TEXT, ("--grid", "marginal_share=0.3,0.5"), "images in column 'x'"),
    "sets": (SETS, ("--method", "dpgm", "--grid", "n_clusters=2,3"), "sets of items in column 'items'"),
    "mixtures": (tables.IMAGE_SCHEMA_TEXT, ("--method", "dpmix", "--grid", "mixture_degree=4,8"), "dpmix"),
    "a checkpoint": (tables.IMAGE_SCHEMA_TEXT, ("--grid", "marginal_share=0.3", "--checkpoint", "c"), "--checkpoint"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_has_no_search_is_refused_before_it_is_charged(folder, call, what):
    text, arguments, said = OTHERS[what]
    (folder / "schema.yaml").write_text(text, encoding="utf-8")
    if what == "sets":
        np.savez(folder / "data.npz", indptr=[0, 1, 2, 3, 4], indices=[0, 1, 2, 3], n_items=6)
    else:
        tables.write_npz(folder / "data.npz")
    assert call("ledger", "create", "data.ledger", "--epsilon", 2, "--delta", 1e-6).code == 0
    before = (folder / "data.ledger").read_bytes()
    refused = call("model", "tune", "data.npz", *CALL[3:], *arguments, "--ledger", "data.ledger", "--out", "best.sfm")
    assert refused.code == 2
    assert said in refused.err
    assert refused.err.count("Expected") <= 1
    assert "Traceback" not in refused.err
    assert (folder / "data.ledger").read_bytes() == before
    assert not (folder / "best.sfm").exists()
