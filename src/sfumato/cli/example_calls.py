"""An example of every command, for its help: each is a call that the command takes as it is written."""

from __future__ import annotations

from collections.abc import Mapping

JOURNEY = (
    "sfumato schema draft people.csv --out schema.yaml",
    "sfumato plan --schema schema.yaml --epsilon 1",
    "sfumato fit people.csv --schema schema.yaml --epsilon 1 --out people.sfm",
    "sfumato sample people.sfm -n 10000 --out synthetic.csv",
    "sfumato report people.sfm --out page.html",
)
"""From a table to what is published: the help of the program."""

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "demo": ("sfumato demo --out demo --overwrite",),
    "studio": ("sfumato studio", "sfumato studio people.csv --folder people --open"),
    "methods": ("sfumato methods", "sfumato methods p3gm"),
    "schema draft": ("sfumato schema draft people.csv --out schema.yaml",),
    "schema review": ("sfumato schema review schema.yaml --out reviewed.yaml",),
    "schema check": ("sfumato schema check schema.yaml people.csv",),
    "schema import": ("sfumato schema import datapackage.json --from frictionless --out schema.yaml",),
    "schema validate": ("sfumato schema validate people.csv --schema schema.yaml",),
    "plan": (
        "sfumato plan --schema schema.yaml --epsilon 1 --target income",
        "sfumato plan --schema schema.yaml --target-error 0.01",
    ),
    "fit": (
        "sfumato fit people.csv --schema schema.yaml --epsilon 1 --out people.sfm",
        "sfumato fit people.csv --epsilon 1 --delta 1e-6 --out people.sfm",
    ),
    "model tune": (
        "sfumato model tune people.csv --schema s.yaml --epsilon 1 --grid marginal_share=0.2,0.4 --out best.sfm",
        "sfumato model tune people.csv --schema s.yaml --epsilon 1 --method p3gm --grid latent_dim=5,10 --out best.sfm",
    ),
    "model join": (
        "sfumato model join north --name north --messages shared --schema s.yaml --holders 3 --epsilon 1 --delta 1e-6",
    ),
    "model round": ("sfumato model round north north.csv --messages shared --out all.sfm",),
    "model mixture": ("sfumato model mixture points.csv --schema s.yaml --epsilon 1 --components 3 --out m.sfm",),
    "model factors": ("sfumato model factors points.csv --schema s.yaml --epsilon 1 --factors 2 --out f.sfm",),
    "model cluster": ("sfumato model cluster points.csv --schema s.yaml --epsilon 1 --clusters 5 --out c.sfm",),
    "sample": (
        "sfumato sample people.sfm -n 10000 --out synthetic.csv",
        "sfumato sample people.sfm -n 100 --given age=40 --out forty.parquet",
    ),
    "estimate": (
        "sfumato estimate people.sfm mean wage --by sex",
        "sfumato estimate people.sfm 'wage ~ age + C(sex)'",
        "sfumato estimate people.sfm --list",
        "sfumato estimate visits.sfm --units mean 'number of rows of patient'",
    ),
    "certificate": ("sfumato certificate people.sfm", "sfumato certificate people.sfm --public-key office.pem.pub"),
    "report": (
        "sfumato report people.sfm --out page.html",
        "sfumato report people.sfm --real people.csv --out private.html",
    ),
    "evaluate table": ("sfumato evaluate table people.csv synthetic.csv --schema schema.yaml --target income",),
    "evaluate finding": (
        'sfumato evaluate finding people.csv people.sfm "wage ~ age" age --epsilon 0.1 --ledger people.ledger',
    ),
    "evaluate method": ("sfumato evaluate method --schema schema.yaml --epsilon 1 --fits 1000",),
    "publish pack": ("sfumato publish pack people.sfm --out people --title 'People of Ruritania'",),
    "publish export": ("sfumato publish export people.sfm --as croissant --out croissant.json",),
    "publish combine": ("sfumato publish combine north.sfm south.sfm --disjoint --out all.sfm",),
    "publish sign": ("sfumato publish sign --new-key office.pem", "sfumato publish sign people.sfm --key office.pem"),
    "ledger create": ("sfumato ledger create people.ledger --epsilon 3 --delta 1e-6",),
    "ledger show": ("sfumato ledger show people.ledger",),
    "ledger verify": ("sfumato ledger verify people.ledger people.sfm",),
}
"""Full name of a command → calls of it."""


def epilog(calls: tuple[str, ...]) -> str:
    """Return examples as the end of a help text."""
    from rich.markup import escape

    return "\n".join(["[bold]For example[/]", *(f"  {escape(call)}" for call in calls)])
