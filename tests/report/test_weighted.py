"""Releases of weighted rows: page, card, list of answers and pack, wherever the weight's column stands."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sfumato
from sfumato.publish.pack import pack

N = 1_500


def fitted(place: int, **settings: object) -> sfumato.Release:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"age": rng.integers(18, 90, N), "extra": rng.integers(0, 9, N), "sex": rng.choice(["f", "m"], N)}
    )
    frame["all"] = frame["age"] + frame["extra"]
    frame.insert(place, "w", rng.random(N) * 3 + 0.2)
    whole = {"kind": "integer", "lower": 0, "upper": 120}
    kinds = {
        "w": {"kind": "continuous", "lower": 0, "upper": 4},
        "sex": {"kind": "categorical", "categories": ["f", "m"]},
    }
    columns = {name: kinds.get(name, whole) for name in frame}
    document = {"rows": N, "weight": {"column": "w", "upper": 4}, "columns": columns}
    if settings.pop("ruled", False):
        document["rules"] = [{"sum": {"all": ["age", "extra"]}}]
    return sfumato.fit(frame, document, epsilon=3.0, delta=1e-5, **settings)


@pytest.mark.parametrize(
    ("place", "settings"),
    [
        (0, {}),
        *(
            pytest.param(place, settings, marks=pytest.mark.slow)
            for place, settings in ((2, {}), (0, {"target": "sex"}), (2, {"target": "sex"}), (0, {"ruled": True}))
        ),
        pytest.param(2, {"ruled": True}, marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
def test_a_release_of_weighted_rows_is_shown_wherever_its_weight_stands(tmp_path, place, settings) -> None:
    release = fitted(place, **settings)
    release.report(tmp_path / "page.html")
    assert "Rows weighted" in str(release.count())
    assert "<style" in release._repr_html_()
    assert (release.answers()["first"] != "w").all()
    release.save(tmp_path / "r.sfm")
    pack(tmp_path / "r.sfm", tmp_path / "pack")
    assert (tmp_path / "pack" / "report.html").is_file()
