"""Which columns are modelled, and which one is the class."""

from harness.cases import TABLE, table_layout
from sfumato.methods.tables.layout import TableLayout
from sfumato.schema.grid import Grid


def test_table_is_the_one_the_schema_says():
    assert table_layout().n_classes == 2
    assert TableLayout(Grid.of(TABLE, numeric_cells=8), None).n_classes == 1
