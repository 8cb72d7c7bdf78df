"""The cost of a union: the largest of the parts, under one relation."""

import dataclasses

import pytest

from fixtures.parts import part
from sfumato.errors import ConfigError
from sfumato.fitting.contents import AS_SOURCE
from sfumato.privacy.certificate_form import PriorRelease
from sfumato.privacy.combined_certificate import CombinedCertificate
from sfumato.privacy.plan import Neighbours
from sfumato.privacy.words import of_prior


@pytest.fixture(scope="module")
def certificates():
    return [part(0).certificate, part(1, epsilon=2.0).certificate]


def test_the_cost_is_the_largest(certificates):
    union = CombinedCertificate.of(certificates, ["a", "b"])
    assert (union.epsilon, union.delta, union.n_public) == (certificates[1].epsilon, 1e-5, 600)
    assert union.replace_one.epsilon == max(own.replace_one.epsilon for own in certificates)
    union.verify()
    content = union.to_dict()
    assert content["disjoint"].startswith("The holder states")
    assert [own["sha256"] for own in content["parts"]] == ["a", "b"]
    assert not union.private


def test_secret_noise_is_stated_as_a_guarantee(certificates):
    secret = [dataclasses.replace(own, private=True) for own in certificates]
    assert CombinedCertificate.of(secret, ["a", "b"]).summary().startswith("Guarantee: epsilon = 2,")


def test_another_relation_is_refused(certificates):
    other = dataclasses.replace(certificates[1], neighbours=Neighbours.REPLACE_ONE)
    with pytest.raises(ConfigError, match="one neighbouring relation"):
        CombinedCertificate.of([certificates[0], other], ["a", "b"])


def test_what_the_guarantee_of_a_part_rests_on_and_does_not_cover_is_told(certificates):
    first, second = certificates
    own = of_prior(PriorRelease(arrays="a" * 64, content="b" * 64, epsilon=1.0, delta=1e-6))
    both = [dataclasses.replace(c, assumptions=(*c.assumptions, AS_SOURCE)) for c in (first, second)]
    both[1] = dataclasses.replace(both[1], assumptions=(*both[1].assumptions, own), read_off=("bounds of 'x'",))
    union = CombinedCertificate.of(both, ["a", "b"])
    assert union.assumptions[-2:] == [AS_SOURCE, f"Part 2: {own}"]
    assert union.to_dict()["assumptions"] == union.assumptions
    assert union.to_dict()["read_off"] == ["bounds of 'x'"]
    assert f"\n{AS_SOURCE}\nPart 2: The release {'b' * 16} (epsilon 1" in union.summary()
