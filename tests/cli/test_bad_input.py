"""Bad input gets its own clear error, or works; and nothing is charged on the way to an error."""

import json
import os
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from fixtures import tables
from sfumato import MaxEntropy
from sfumato.errors import ConfigError, PrivacyWarning
from sfumato.privacy.ledger import Ledger
from sfumato.release_front import load

FIT = ("fit", "people.csv", "--schema", "schema.yaml", "--epsilon", 1, "--out", "r")
PLAN = ("plan", "--schema", "schema.yaml", "--epsilon", 1)
SMALL = """\
rows: 100
columns:
  a: {kind: categorical, categories: [x, y], nullable: true}
  b: {kind: integer, lower: 0, upper: 9}
"""


@pytest.fixture(autouse=True)
def charged(monkeypatch) -> list[str]:
    """Names of the stages that were charged."""
    names: list[str] = []
    charge = Ledger.charge

    def recording(self, name, event):
        names.append(name)
        return charge(self, name, event)

    monkeypatch.setattr(Ledger, "charge", recording)
    return names


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    tables.write_csv(tmp_path / "people.csv")
    (tmp_path / "schema.yaml").write_text(tables.SCHEMA_TEXT, encoding="utf-8")
    return tmp_path


@pytest.fixture
def refused(call, charged):
    """Run a command that has to be refused, with nothing charged and nothing written."""

    def refusing(*arguments: object, code: int = 2) -> str:
        here = set(Path().rglob("*"))
        result = call(*arguments)
        assert result.code == code, result
        assert result.out == ""
        assert charged == []
        assert set(Path().rglob("*")) == here
        return result.err

    return refusing


@pytest.fixture
def works(call):
    """Fit a file and sample from it: all of it has to work."""

    def working(content: str | bytes, schema: str = SMALL, *options: object) -> str:
        raw = content if isinstance(content, bytes) else content.encode()
        Path("people.csv").write_bytes(raw)
        Path("schema.yaml").write_text(schema, encoding="utf-8")
        result = call(*FIT, *options)
        assert result.code == 0, result.err
        assert call("sample", "r", "-n", 30, "--out", "s.csv", "--overwrite").code == 0
        return Path("s.csv").read_text(encoding="utf-8")

    return working


class TestBudget:
    @pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf", "-inf", "1e9"])
    @pytest.mark.parametrize("command", [FIT, PLAN], ids=["fit", "plan"])
    def test_epsilon(self, folder, refused, command, epsilon):
        said = refused(*command, f"--epsilon={epsilon}")
        assert "epsilon" in said
        assert "Expected" in said

    @pytest.mark.parametrize("delta", ["0", "1", "-0.1", "2", "nan", "inf"])
    @pytest.mark.parametrize("command", [FIT, PLAN], ids=["fit", "plan"])
    def test_delta(self, folder, refused, command, delta):
        assert "0 < delta < 1" in refused(*command, f"--delta={delta}")

    @pytest.mark.filterwarnings("default::sfumato.errors.PrivacyWarning")
    @pytest.mark.parametrize("command", [FIT, PLAN], ids=["fit", "plan"])
    def test_delta_of_one_over_n_warns(self, folder, call, command):
        result = call(*command, "--delta", 1 / 240)
        assert result.code == 0
        assert "1/n_public" in result.err
        assert "Note:" in result.err
        assert "1/n_public" not in call(*PLAN).err

    def test_delta_of_one_over_n_warns_in_python(self):
        with pytest.warns(PrivacyWarning, match="1/n_public"):
            MaxEntropy(epsilon=1.0, delta=1 / 240).plan(tables.schema())

    @pytest.mark.parametrize("rows", [0, -5])
    @pytest.mark.parametrize("command", [FIT, PLAN], ids=["fit", "plan"])
    def test_rows(self, folder, refused, command, rows):
        assert "n_public" in refused(*command, f"--rows={rows}")

    @pytest.mark.parametrize("command", [FIT, PLAN], ids=["fit", "plan"])
    def test_no_row_count_declared(self, folder, refused, command):
        text = tables.SCHEMA_TEXT.replace("rows: 240\n", "")
        Path("schema.yaml").write_text(text, encoding="utf-8")
        said = refused(*command)
        for way_out in ("rows:", "--rows", "--rows estimate"):
            assert way_out in said

    @pytest.mark.parametrize("epsilon", [None, "1", True, 1j])
    def test_epsilon_of_another_type(self, epsilon):
        with pytest.raises(ConfigError, match="epsilon"):
            MaxEntropy(epsilon=epsilon).plan(tables.schema())

    @pytest.mark.parametrize("seed", [-1, 2**70])
    def test_seed(self, folder, call, charged, seed):
        result = call(*FIT, f"--seed={seed}")
        assert result.code == 0 or (result.code == 2 and "seed" in result.err and not charged)


class TestColumns:
    def test_unknown_target(self, folder, refused):
        said = refused(*FIT, "--target", "wages")
        assert "'wages'" in said
        assert "'income'" in said
        assert "'wages'" in refused(*PLAN, "--target", "wages")

    def test_a_target_that_is_not_released(self, folder, refused):
        assert "'id'" in refused(*FIT, "--target", "id")

    def test_missing_column(self, folder, refused):
        tables.write_csv(folder / "people.csv", tables.frame().drop(columns=["age"]))
        said = refused(*FIT)
        assert "'age'" in said
        assert "people.csv" in said

    def test_a_misspelt_column(self, folder, refused):
        tables.write_csv(folder / "people.csv", tables.frame().rename(columns={"weight": "Wieght"}))
        assert "Did you mean 'Wieght'?" in refused(*FIT)

    def test_columns_that_the_schema_does_not_name(self, folder, call):
        tables.write_csv(folder / "people.csv", tables.frame().assign(extra=1, more=2))
        assert "not released: 'id', 2 columns that the schema does not name." in call(*FIT).err

    @pytest.mark.parametrize("quote", ['"id', '"income'])
    def test_a_stray_quote_in_the_header(self, folder, call, quote):
        # the quote makes the first records part of a name
        text = Path("people.csv").read_text(encoding="utf-8").replace(quote[1:], quote, 1)
        Path("people.csv").write_text(text.replace("low", 'Xanthippe"', 1), encoding="utf-8")
        for command in (FIT, ("schema", "check", "schema.yaml", "people.csv")):
            result = call(*command)
            assert result.code
            assert "Xanthippe" not in result.err + result.out

    def test_missing_unit_column(self, folder, refused):
        text = tables.SCHEMA_TEXT.replace("columns:", "unit: {column: who, max_rows: 3}\ncolumns:\n  who: identifier")
        Path("schema.yaml").write_text(text, encoding="utf-8")
        assert "'who'" in refused(*FIT)

    def test_an_identifier_need_not_be_there(self, folder, call):
        tables.write_csv(folder / "people.csv", tables.frame().drop(columns=["id"]))
        assert call(*FIT).code == 0

    def test_schema_of_another_table(self, folder, refused):
        Path("schema.yaml").write_text("rows: 9\ncolumns: {height: boolean}\n", encoding="utf-8")
        said = refused(*FIT)
        assert "another table" in said
        assert "'height'" in said

    def test_no_header_line(self, folder, refused):
        # its first record looks like a header: it must not be shown
        Path("people.csv").write_text("Xanthippe,f\nSocrates,m\n", encoding="utf-8")
        for command in (FIT, ("schema", "check", "schema.yaml", "people.csv")):
            said = refused(*command)
            assert "header" in said
            assert "Xanthippe" not in said

    @pytest.mark.parametrize("header", ["sex,sex", '"sex', "sex\x00,age"])
    def test_bad_headers(self, folder, refused, header):
        Path("people.csv").write_text(f"{header}\nXanthippe,1\n", encoding="utf-8")
        assert "Xanthippe" not in refused(*FIT, code=1)

    @pytest.mark.filterwarnings("default:No cell of")
    def test_types_that_cannot_hold_the_schema(self, folder, call):
        """One cell may have decided the type: it is said, and nothing is refused."""
        tables.write_parquet(folder / "people.parquet")
        table = pq.read_table(folder / "people.parquet").replace_schema_metadata()  # types that no program inferred
        pq.write_table(table, folder / "people.parquet")
        text = tables.SCHEMA_TEXT.replace(
            "age: {kind: integer, lower: 0, upper: 100}", "age: {kind: categorical, categories: [young, old]}"
        )
        Path("schema.yaml").write_text(text, encoding="utf-8")
        assert "No cell of 'age' is one of its labels" in " ".join(call("fit", "people.parquet", *FIT[2:]).err.split())

    def test_pictures_of_another_shape(self, folder, refused):
        tables.write_npz(folder / "pictures.npz")
        text = tables.IMAGE_SCHEMA_TEXT.replace("[4, 4]", "[28, 28]")
        Path("schema.yaml").write_text(text, encoding="utf-8")
        assert "shape" in refused("fit", "pictures.npz", *FIT[2:])
        Path("schema.yaml").write_text(tables.IMAGE_SCHEMA_TEXT, encoding="utf-8")
        assert "'x'" in refused(*FIT)

    def test_a_table_with_pictures_and_numbers(self, folder, refused):
        Path("schema.yaml").write_text(tables.IMAGE_SCHEMA_TEXT + "  z: boolean\n", encoding="utf-8")
        assert "label column" in refused(*PLAN)


class TestRecords:
    @pytest.mark.parametrize("content", ["a,b\n", "a,b", "a,b\r\n"])
    def test_no_rows(self, folder, works, content):
        assert works(content).count("\n") == 31

    @pytest.mark.parametrize("content", ["a,b\nx,3\n", "a,b\ny,", "a,b\n,\n"])
    def test_one_row(self, folder, works, content):
        works(content)
        works(content, SMALL, "--target", "a", "--overwrite")

    def test_an_empty_file(self, folder, refused):
        Path("people.csv").write_bytes(b"")
        assert "empty" in refused(*FIT, code=1)

    def test_no_images(self, folder, call):
        np.savez(folder / "pictures.npz", x=np.zeros((0, 4, 4), np.uint8), y=np.zeros(0, int))
        Path("schema.yaml").write_text(tables.IMAGE_SCHEMA_TEXT, encoding="utf-8")
        assert call("fit", "pictures.npz", *FIT[2:]).code == 0
        assert call("sample", "r", "--out", "s.npz").code == 0

    def test_a_column_of_nothing_but_missing(self, folder, works):
        works("a,b\n" + ",\n" * 100)
        works("a,b\n" + ",NA\n" * 100, SMALL, "--target", "a", "--overwrite")

    def test_a_constant_column(self, folder, works):
        works("a,b\n" + "x,5\n" * 100, SMALL, "--epsilon=5")
        schema = (
            "rows: 100\ncolumns:\n  a: {kind: categorical, categories: [x]}\n  b: {kind: integer, lower: 5, upper: 5}\n"
        )
        made = works("a,b\n" + "x,5\n" * 100, schema, "--target", "a", "--overwrite")
        assert set(made.splitlines()) == {"a,b", "x,5"}

    @pytest.mark.slow
    def test_many_categories(self, folder, works):
        labels = [f"k{i}" for i in range(100_000)]
        schema = (
            f"rows: 100000\ncolumns:\n  a: {{kind: categorical, categories: [{', '.join(labels)}]}}\n  b: boolean\n"
        )
        made = works("a,b\n" + "".join(f"{label},1\n" for label in labels[:5000]), schema, "--target", "b")
        assert {line.partition(",")[0] for line in made.splitlines()[1:]} <= set(labels)

    def test_a_target_of_too_many_categories(self, folder, refused):
        labels = ", ".join(map(str, range(2000)))
        schema = f"rows: 9\ncolumns:\n  a: {{kind: categorical, categories: [{labels}]}}\n  b: boolean\n"
        Path("schema.yaml").write_text(schema, encoding="utf-8")
        Path("people.csv").write_text("a,b\n1,true\n", encoding="utf-8")
        assert "1000 classes" in refused(*FIT, "--target", "a")

    def test_a_numeric_target_counts_as_one_class(self, folder, call):
        assert call(*FIT, "--target", "age").code == 0
        assert load("r").sampler["target"] is None

    def test_values_outside_the_domain(self, folder, works):
        cells = ["z,100", "x,-7", "x,1e400", "x,nan", '"x\ny",3', "x,3,4", "x", "", "\x00,\x00", "'x',0x10", "x,١٢"]
        made = works("a,b\n" + "\n".join(cells))
        for line in made.splitlines()[1:]:
            label, number = line.split(",")
            assert label in {"x", "y", ""}
            assert 0 <= int(number) <= 9


class TestEncodings:
    SCHEMA = "rows: 60\ncolumns:\n  größe: {kind: categorical, categories: [klein, groß]}\n  b: boolean\n"
    TEXT = "größe,b\n" + "groß,1\n" * 60

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
    def test_read_right(self, folder, works, encoding):
        header, _, body = self.TEXT.partition("\n")
        content = self.TEXT.encode(encoding)
        if encoding == "latin-1":  # cells may be in any encoding; a header that is not UTF-8 is read as Windows-1252
            content = header.encode(encoding) + b"\n" + body.encode(encoding)
        made = works(content, self.SCHEMA, "--epsilon=5")
        assert made.startswith("größe,b\n")
        assert made.count("groß") > 25

    @pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
    def test_no_mark(self, folder, refused, encoding):
        Path("people.csv").write_bytes(self.TEXT.encode(encoding))
        Path("schema.yaml").write_text(self.SCHEMA, encoding="utf-8")
        assert "UTF-8" in refused(*FIT, code=1)

    def test_a_schema_in_another_encoding(self, folder, refused):
        Path("schema.yaml").write_bytes(self.SCHEMA.encode("latin-1"))
        assert "UTF-8" in refused(*PLAN)


class TestFiles:
    def test_a_directory(self, folder, refused):
        Path("data").mkdir()
        assert "no column 'sex'" in refused("fit", "data", *FIT[2:])  # a folder holds images
        Path("data.csv").mkdir()
        assert "directory" in refused("fit", "data.csv", *FIT[2:], code=1)
        assert "schema.yaml" in refused("fit", "people.csv", "--schema", "schema.yaml/x", *FIT[4:])
        assert "data" in refused("fit", "people.csv", "--schema", "data", *FIT[4:])

    def test_a_missing_file(self, folder, refused):
        assert "nobody.csv" in refused("fit", "nobody.csv", *FIT[2:], code=1)
        assert "nobody.yaml" in refused("plan", "--schema", "nobody.yaml", "--epsilon", 1)
        assert "nobody" in refused("sample", "nobody", "--out", "s.csv", code=1)
        assert "nobody" in refused("certificate", "nobody", code=1)

    @pytest.mark.parametrize("name", ["people.parquet", "people.npz", "people.csv.gz", "people"])
    def test_a_file_that_is_something_else(self, folder, refused, name):
        Path(name).write_text("sex,age\nXanthippe,3\n", encoding="utf-8")
        said = refused("fit", name, *FIT[2:], code=1)
        assert name in said
        assert "Xanthippe" not in said

    def test_pickled_objects(self, folder, refused):
        np.savez(folder / "people.npz", x=np.array([object()] * 3, dtype=object).reshape(3, 1))
        Path("schema.yaml").write_text(tables.IMAGE_SCHEMA_TEXT, encoding="utf-8")
        assert "never opened" in refused("fit", "people.npz", *FIT[2:], code=1)

    @pytest.mark.parametrize("command", [FIT, PLAN], ids=["fit", "plan"])
    def test_data_in_place_of_a_schema(self, folder, refused, command):
        Path("schema.yaml").write_text("name: Xanthippe\nage: [3\n", encoding="utf-8")
        assert "Xanthippe" not in refused(*command)
        Path("schema.yaml").write_text("name,age\nXanthippe,3\n", encoding="utf-8")
        assert "Xanthippe" not in refused(*command)

    @pytest.mark.parametrize("out", ["no/such/folder/r", "people.csv/r"])
    def test_no_place_for_the_output(self, folder, refused, out):
        assert "folder" in refused(*FIT[:-1], out)

    def test_a_folder_that_may_not_be_written(self, folder, refused, monkeypatch):
        monkeypatch.setattr("os.access", lambda _path, mode: not mode & os.W_OK)
        assert "writable" in refused(*FIT)

    @pytest.mark.parametrize("out", ["r", "r.sfm"])
    def test_a_full_disk(self, folder, call, monkeypatch, out):
        def full(*_, **__):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "write_bytes", full)
        monkeypatch.setattr("zipfile.ZipFile.writestr", full)
        result = call(*FIT[:-1], out)
        assert result.code == 2
        assert "No space left on device" in result.err
        assert not list(folder.glob("*.partial")) + list(folder.glob(".*")) + list(folder.glob("r*"))

    def test_a_release_is_no_data(self, folder, call, refused, charged):
        assert call(*FIT[:-1], "r.sfm").code == 0
        charged.clear()
        refused("fit", "r.sfm", *FIT[2:-1], "r2", code=1)
        refused("sample", "people.csv", "--out", "s.csv", code=1)
        refused("certificate", "people.csv", code=1)


@pytest.mark.parametrize(
    "formula",
    [
        "b ~ I(b * (1 + 0*__import__('os').system('touch ran')))",
        "b ~ a.str",
        "b ~ a[0]",
        "b ~ open('ran', 'w')",
        "b ~ print",
        "b ~ I((lambda: 1)())",
        "b ~ I(f'{b}')",
        "b ~ I(9**9**9)",
        "b ~ (a + b)**40",
        "b ~ " + "+".join(f"I(b**{i})" for i in range(100_000)),
        "b ~ " + "(" * 100_000 + "b" + ")" * 100_000,
    ],
    ids=range(11),
)
def test_a_formula_of_a_strangers_schema_runs_nothing(folder, refused, call, formula):
    questions = f"questions: [{{ols: {json.dumps(formula)}}}]\n"
    Path("schema.yaml").write_text(SMALL + questions, encoding="utf-8")
    Path("people.csv").write_text("a,b\nx,1\ny,2\n", encoding="utf-8")
    for command in (("schema", "check", "schema.yaml"), PLAN, FIT):
        said = refused(*command)
        assert len(said) < 500
        assert said.count("Expected") == 1
