"""P3GM: published settings, refusals, and that it learns."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("torch", reason="networks need the extra nets")

from sfumato import P3GM, NonPrivate, Schema
from sfumato.columns.kinds import Categorical, Continuous, Integer
from sfumato.errors import ConfigError, EstimateError
from sfumato.methods.p3gm.recipe import Mixture, Multipliers, Random, Shares
from sfumato.methods.p3gm.settings import StandardNormal, released, written
from sfumato.privacy.accounting import account
from sfumato.privacy.plan import Plan, Stage

FULL_EFFORT = True  # costs are held to exact figures


def plan_of(noise: Multipliers, rows: int, steps: int, batch: int) -> Plan:
    """The three stages of the paper, without the centre and the marginals that are bought here."""
    return Plan(
        [
            Stage(name="axes", noise_multiplier=noise.moment),
            Stage(name="mixture", noise_multiplier=noise.mixture, count=20),
            Stage(name="decoder", noise_multiplier=noise.decoder, sampling_probability=batch / rows, count=steps),
        ]
    )


class TestPublished:
    """Golden values of the design's account of the published noise, at delta = 1e-5."""

    @pytest.mark.parametrize(
        ("data", "rows", "batch", "steps", "epsilon"),
        [("mnist", 63_000, 300, 840, 0.5611), ("adult", 40_699, 200, 1_018, 0.5868)],
    )
    def test_as_written(self, data, rows, batch, steps, epsilon):
        assert account(plan_of(written(data)["noise"], rows, steps, batch), 1e-5).epsilon == pytest.approx(
            epsilon, abs=2e-3
        )

    @pytest.mark.parametrize(
        ("data", "rows", "batch", "steps", "epsilon"),
        [("mnist", 63_000, 300, 840, 0.901), ("esr", 10_350, 100, 207, 0.909), ("credit", 9_442, 100, 1_417, 0.890)],
    )
    def test_as_released(self, data, rows, batch, steps, epsilon):
        assert account(plan_of(released(data)["noise"], rows, steps, batch), 1e-5).epsilon == pytest.approx(
            epsilon, abs=2e-3
        )

    def test_a_preset_states_its_true_epsilon_with_what_is_bought_besides(self):
        chosen = P3GM.as_released("mnist")
        assert chosen.epsilon == pytest.approx(0.904, abs=2e-3)
        assert chosen.latent_dim == 30
        assert chosen.prior == Mixture()
        written = P3GM.as_written("mnist")
        assert written.prior == Mixture(n_components=3)
        assert written.start == Random()

    def test_settings_that_never_met_their_epsilon_have_a_true_one(self):
        assert P3GM.as_written("credit").epsilon == pytest.approx(0.847, abs=2e-3)

    def test_no_such_data_set(self):
        with pytest.raises(ConfigError, match="mnist"):
            P3GM.as_released("iris")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"latent_dim": 0}, "latent_dim"),
        ({"epochs": 0}, "epochs"),
        ({"heads": "other"}, "heads"),
        ({"start": "random"}, "start"),
        ({"prior": 3}, "prior"),
        ({"noise": 1.0}, "noise"),
        ({"record_norm": -1}, "record_norm"),
        ({"prior": StandardNormal(), "record_norm": 1.0}, "no axes"),
        ({"prior": StandardNormal(), "variance": False}, "variance network"),
    ],
)
def test_settings_outside_their_domain(settings, said):
    with pytest.raises(ConfigError, match=said):
        P3GM(epsilon=1.0, **settings)


def test_shares_leave_some_for_the_decoder():
    with pytest.raises(ConfigError, match="decoder"):
        Shares(moment=0.6, mixture=0.5)


class TestBaseline:
    """DP-VAE: a standard normal prior, and an encoder that is trained."""

    def test_only_marginals_are_bought_beside_the_steps(self):
        _, schema = table(400)
        plan = P3GM(epsilon=1.0, delta=1e-5, prior=StandardNormal()).plan(schema, target="label")
        assert [stage.name for stage in plan.stages] == ["marginals", "autoencoder"]
        assert plan["autoencoder"].sampling_probability == 300 / 400

    def test_the_steps_get_all_that_the_marginals_leave(self):
        """At equal marginals the descent has less noise than one that shares with axes and a mixture."""
        _, schema = table(400)
        settings = {"epsilon": 1.0, "delta": 1e-5}
        alone = P3GM(prior=StandardNormal(), **settings).plan(schema)
        shared = P3GM(**settings).plan(schema)
        assert alone["autoencoder"].noise_multiplier < 0.8 * shared["decoder"].noise_multiplier
        assert alone["marginals"].noise_multiplier == pytest.approx(shared["marginals"].noise_multiplier, rel=0.1)

    def test_multipliers_are_those_of_the_stages(self):
        _, schema = table(400)
        noise = Multipliers(centre=1.0, moment=1.0, mixture=1.0, decoder=3.0, marginals=9.0)
        plan = P3GM(epsilon=1.0, delta=1e-5, prior=StandardNormal(), noise=noise).plan(schema)
        one, other = plan.stages
        assert one.noise_multiplier / other.noise_multiplier == pytest.approx(3.0)

    def test_a_certificate_says_which_it_is(self):
        frame, schema = table(400)
        method = P3GM.preset("dp-vae", epsilon=1.0, latent_dim=2, hidden=4, epochs=0.5)
        release = method.fit(frame, schema=schema, seed=0)
        assert release.certificate.preset.startswith("dp-vae: as DP-VAE")
        assert release.parameters["prior_means"].tolist() == [[0.0, 0.0]]


def table(n: int = 4000):
    """Two numbers and a label that go together."""
    rng = np.random.default_rng(0)
    hidden = rng.standard_normal(n)
    label = np.where(hidden + 0.5 * rng.standard_normal(n) > 0, "yes", "no")
    frame = pd.DataFrame(
        {
            "amount": np.exp(hidden + 0.3 * rng.standard_normal(n)).round(3).clip(0, 50),
            "age": np.clip(50 + 12 * hidden + 6 * rng.standard_normal(n), 0, 120).astype(int),
            "label": label,
        }
    )
    columns = {
        "amount": Continuous(lower=0, upper=50, resolution=0.001),
        "age": Integer(lower=0, upper=120),
        "label": Categorical(categories=("no", "yes")),
    }
    return frame, Schema(columns=columns, rows=n)


@pytest.mark.parametrize("epsilon", [NonPrivate(), 2.0])
def test_it_learns_marginals_and_what_goes_together(epsilon):
    frame, schema = table()
    chosen = P3GM(epsilon=epsilon, latent_dim=3, hidden=64, epochs=3, batch_size=200)
    made = chosen.fit(frame, schema=schema, target="label", seed=0).sample(4000, seed=0)
    assert (made["label"] == "yes").mean() == pytest.approx((frame["label"] == "yes").mean(), abs=0.05)
    for name in ("amount", "age"):
        for share in (0.25, 0.5, 0.75):
            wanted = frame[name].quantile(share)
            assert (made[name] <= wanted).mean() == pytest.approx((frame[name] <= wanted).mean(), abs=0.08)
    for name in ("amount", "age"):
        real = frame.groupby("label")[name].median()
        ours = made.groupby("label")[name].median()
        assert ours["yes"] > ours["no"] + 0.4 * (real["yes"] - real["no"])
    assert made["amount"].corr(made["age"], method="spearman") > 0.4


def test_estimates_rest_on_the_marginals_that_it_bought():
    """Of each column by itself; how two go together no measurement of columns says, whatever the decoder made of it."""
    rng = np.random.default_rng(0)
    n, yes = 2000, np.random.default_rng(1).random(2000) < 0.3
    frame = pd.DataFrame(
        {
            "x": np.clip(rng.normal(size=n) + yes, -4, 5), "g": np.where(rng.random(n) < 0.2 + 0.6 * yes, "a", "b"),
            "y": np.where(yes, "yes", "no"),
        }
    )  # fmt: skip
    columns = {
        "x": Continuous(lower=-4, upper=5), "g": Categorical(categories=("a", "b")),
        "y": Categorical(categories=("no", "yes")),
    }  # fmt: skip
    method = P3GM(epsilon=1.0, latent_dim=2, hidden=4, epochs=1, batch_size=500)
    release = method.fit(frame, schema=Schema(columns=columns, rows=n), target="y", seed=0)
    for found, truth in (
        (release.share({"y": "yes"}, target="table"), yes.mean()),
        (release.share({"g": "a"}, target="table"), (frame.g == "a").mean()),
        (release.mean("x", target="table"), frame.x.mean()),
    ):
        assert found.value == pytest.approx(truth, abs=4 * found.std_error)
        assert 0 < found.std_error < 0.2
    for ask in (
        lambda: release.crosstab("g", "y"),
        lambda: release.mean("x", by="y"),
        lambda: release.variance("x", by="y"),
        lambda: release.share({"g": "a"}, by="y"),
        lambda: release.ols("x ~ g"),
    ):
        with pytest.raises(EstimateError, match="not measured together"):
            ask()
    listed = release.answers().set_index("kind")
    assert (listed.loc[["crosstab", "mean by"], "answered"] == "no").all()
    assert listed.loc["mean", "answered"] == "yes"
