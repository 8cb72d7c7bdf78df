"""What a caller hands to a fit: of whom the guarantee is, where a name says that rows belong to persons."""

import warnings

import pytest

from sfumato import Schema
from sfumato.columns.kinds import Identifier, Open
from sfumato.errors import PrivacyWarning
from sfumato.fitting.arguments import warn_of_units
from sfumato.schema.unit import Unit


def test_a_column_of_persons_without_a_unit_is_said():
    with pytest.warns(PrivacyWarning, match=r"unit: \{column: patient_id, max_rows: N\}"):
        warn_of_units(Schema(columns={"age": Open(), "patient_id": Open()}))


@pytest.mark.parametrize(
    "schema",
    [
        Schema(columns={"patient_id": Identifier(), "age": Open()}, unit=Unit(column="patient_id", max_rows=3)),
        Schema(columns={"patient_id": Identifier(), "age": Open()}),
        Schema(columns={"order_no": Open(), "patient_age": Open(), "member": Open()}),
    ],
)
def test_others_are_not(schema):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_units(schema)
