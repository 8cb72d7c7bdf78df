"""The cost of several releases of disjoint people together: that of the costliest, as a person is in one alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.errors import ConfigError
from sfumato.privacy.certificate import Certificate, require_verified
from sfumato.privacy.certificate_form import Point
from sfumato.privacy.plan import Neighbours
from sfumato.privacy.reading import document, entry, number, plain, whole
from sfumato.privacy.words import shown
from sfumato.privacy.words import whole as whole_line

DISJOINT = (
    "The holder states that no person is in two of the parts, and that the part a person is in does not depend on who "
    "else is there. Nothing checks it: somebody in several parts has the sum of their costs."
)


@document
class PartCost:
    """One part: the hash of its file, its public number of rows, its method and what it cost."""

    sha256: str = entry(str)
    n: int = entry(whole(1))
    method: str = entry(str)
    epsilon: float = entry(number(0, 1_000.0))
    delta: float = entry(number(0, 1, inside=True))


@dataclass(frozen=True)
class CombinedCertificate:
    """What several releases of disjoint people cost each of these people ([proof](docs/proofs/combine.md)).

    Attributes:
        certificates: of the parts, in order.
        parts: each part by its hash, rows and cost.

    Raises:
        ConfigError: a part states no ε, or they have different neighbouring relations.
    """

    certificates: tuple[Certificate, ...]
    parts: tuple[PartCost, ...]

    @classmethod
    def of(cls, certificates: Sequence[Certificate], hashes: Sequence[str]) -> CombinedCertificate:
        """Return the certificate of parts, with the hashes of their files."""
        costs = []
        for place, (own, sha256) in enumerate(zip(certificates, hashes, strict=True), 1):
            if own.epsilon is None or own.delta is None:
                raise ConfigError(
                    f"Expected releases with noise to combine, got part {place}, which states no epsilon."
                )
            if own.neighbours is not certificates[0].neighbours:
                raise ConfigError(
                    f"Expected releases under one neighbouring relation, got part {place} under "
                    f"{own.neighbours.value} and part 1 under {certificates[0].neighbours.value}."
                )
            if own.n_public is None or own.n_public_source != "declared":
                raise ConfigError(
                    f"Expected releases whose numbers of rows are declared, got part {place} with an estimated one. "
                    "Declare `rows`, and fit again."
                )
            costs.append(
                PartCost(sha256=sha256, n=own.n_public, method=own.method, epsilon=own.epsilon, delta=own.delta)
            )
        return cls(tuple(certificates), tuple(costs))

    @property
    def n_public(self) -> int:
        """The public number of rows of all parts."""
        return sum(part.n for part in self.parts)

    @property
    def epsilon(self) -> float:
        """The largest ε of the parts, in nats, at `delta`."""
        return max(part.epsilon for part in self.parts)

    @property
    def delta(self) -> float:
        """The largest δ of the parts."""
        return max(part.delta for part in self.parts)

    @property
    def replace_one(self) -> Point | None:
        """ε and δ where a person of a part is replaced by another of the same part; None where a part states none."""
        points = [own.replace_one for own in self.certificates]
        known = [point for point in points if point is not None]
        if len(known) < len(points):
            return None
        return Point(epsilon=max(point.epsilon for point in known), delta=max(point.delta for point in known))

    @property
    def private(self) -> bool:
        """Whether the noise of all parts was secret."""
        return all(own.private for own in self.certificates)

    @property
    def assumptions(self) -> list[str]:
        """What the guarantees of the parts rest on, do not cover, and what their priors were: what all say, once."""
        lines = [own.assumptions for own in self.certificates]
        shared = [line for line in lines[0] if all(line in own for own in lines)]
        of_some = [f"Part {i}: {line}" for i, own in enumerate(lines, 1) for line in own if line not in shared]
        return [whole_line(line) for line in (*shared, *of_some)]

    def verify(self) -> None:
        """Check the cost of each part against its events: `Certificate.verify`.

        Raises:
            ReleaseError: the events of a part cost more than it states.
        """
        for place, own in enumerate(self.certificates, 1):
            require_verified(own, f"a part {place}")

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready copy: the keys of `certificate --json` of a combined release."""
        point = self.replace_one
        return {
            "epsilon": self.epsilon, "delta": self.delta, "neighbours": self.certificates[0].neighbours.value,
            "replace_one": None if point is None else {"epsilon": point.epsilon, "delta": point.delta},
            "unit": plain(self.certificates[0].unit), "n_public": self.n_public, "private": self.private,
            "disjoint": DISJOINT, "assumptions": self.assumptions, "parts": [plain(part) for part in self.parts],
            "read_off": sorted({fact for own in self.certificates for fact in own.read_off}),
        }  # fmt: skip

    def summary(self) -> str:
        """Return the guarantee, what it rests on, and a line per part."""
        own, replaced = self.certificates[0], self.replace_one
        who, removes = f"one {shown(own.unit.name)}", own.neighbours is Neighbours.ADD_REMOVE
        how = f"adding or removing {who}" if removes else f"replacing {who} by another of the same part"
        head = f"Guarantee: epsilon = {self.epsilon:g}, delta = {self.delta:g}, for {how}."
        if not self.private:
            head = f"NOT PRIVATE: the noise of a part was seeded. Secret noise would cost epsilon = {self.epsilon:g}."
        lines = [head]
        if replaced is not None and removes:
            lines.append(f"Replacing {who} by another of the same part: epsilon = {replaced.epsilon:g}.")
        lines.append(DISJOINT)
        lines += [
            f"Part {i}: {part.n} rows by {shown(part.method)}, epsilon = {part.epsilon:g}, delta = {part.delta:g}, "
            f"sha256 {part.sha256}."
            for i, part in enumerate(self.parts, 1)
        ]
        if any(own.read_off for own in self.certificates):
            lines.append("Facts of a part's schema were read off its records, which the guarantee does not cover.")
        return "\n".join([*lines, "The parts rest on these assumptions:", *self.assumptions])

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        from sfumato.cards.html import card, paragraph

        return card("Certificate: what the combined release cost", *map(paragraph, self.summary().split("\n")))
