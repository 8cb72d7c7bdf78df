"""Presets: what settings they mean, what their certificates say, and what is refused."""

import json
from dataclasses import replace

import pytest

from fixtures import tables
from sfumato import DPGM, P3GM, DPMix, settings
from sfumato.errors import ConfigError
from sfumato.fitting.purposes import preset_of
from sfumato.methods.registry import METHODS
from sfumato.privacy.certificate import Certificate

PAPERS = ("p3gm", "dpgm", "dpmix")
KNOWN = [(method, name) for method in PAPERS for name, found in METHODS[method].make.presets().items()]


@pytest.mark.parametrize(("method", "name"), KNOWN)
def test_each_says_in_one_line_how_it_differs(method, name):
    found = METHODS[method].make.presets()[name]
    assert found.differs
    assert "\n" not in found.differs
    assert found.differs.isascii()
    made = METHODS[method].make.preset(name, epsilon=2.0, delta=1e-6)
    assert (made.epsilon, made.delta) == (2.0, 1e-6)
    assert preset_of(made.presets(), vars(made)).endswith(f": {found.differs}")


@pytest.mark.parametrize("method", METHODS)
def test_the_default_settings_are_of_no_preset(method):
    made = METHODS[method].make(epsilon=1.0)
    assert preset_of(made.presets(), vars(made)) is None


def test_the_constructors_are_the_presets():
    for data in ("adult", "mnist", "credit"):
        found = P3GM.as_released(data)
        assert replace(found, epsilon=1.0) == P3GM.preset(f"as-released:{data}", epsilon=1.0, delta=found.delta)
    assert P3GM.as_written("mnist").latent_dim == P3GM.preset("as-written", epsilon=1.0).latent_dim == 10


def test_settings_go_over_a_preset():
    assert DPGM.preset("published", epsilon=1.0, n_clusters=3).n_clusters == 3
    assert DPGM.preset("published-rbm", epsilon=1.0).component == settings.RBM(
        hidden=200, learning_rate=0.01, n_chains=100, burn_in=1000
    )
    assert P3GM.preset("dp-vae:as-written", epsilon=1.0).latent_dim == 10
    changed = DPMix.preset("published", epsilon=1.0, mixture_degree=8)
    assert preset_of(changed.presets(), vars(changed)) is None


def test_a_name_that_there_is_not():
    with pytest.raises(ConfigError, match="as-released, as-written"):
        P3GM.preset("published", epsilon=1.0)
    with pytest.raises(ConfigError, match="which has none"):
        METHODS["max-entropy"].make.preset("published", epsilon=1.0)


@pytest.mark.slow
def test_a_certificate_says_it_and_one_of_before_says_nothing():
    data, schema = tables.frame(), tables.schema()
    made = DPMix.preset("published", epsilon=5.0, mixture_degree=64, n_mixtures=None)
    certificate = made.fit(data, schema=schema, target="income", seed=0).certificate
    assert certificate.preset.startswith("published: as the paper")
    content = certificate.to_dict()
    assert Certificate.from_dict(json.loads(json.dumps(content))).preset == certificate.preset
    del content["preset"]
    assert Certificate.from_dict(content).preset is None
    assert "preset" not in DPMix(epsilon=5.0).describe_plan(schema, target="income")
