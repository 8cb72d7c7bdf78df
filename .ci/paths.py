"""What four people do first with Sfumato, each a function that fails where they would be stuck: see `newcomer.py`.

python paths.py PATH        works in the current folder, with the package of this Python

Every command that a `Next:` line or an error names is run as it is printed.
"""

from __future__ import annotations

import re
import resource
import shlex
import subprocess
import sys
from pathlib import Path

SEED = 11
ROWS = 300_000
MOST_MEMORY = 1 << 30
STAYS = 6_000


def call(*words: object, code: int = 0) -> str:
    """Run a command, which has to end with this code and no traceback; return what it printed."""
    line = [str(word) for word in words]
    done = subprocess.run([sys.executable, "-m", "sfumato", *line], capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    print("$ sfumato", shlex.join(line), said, sep="\n", flush=True)
    assert done.returncode == code, f"{shlex.join(line)}: code {done.returncode}, expected {code}"
    assert "Traceback" not in said, line
    assert "unexpected error" not in said, line
    return done.stdout


def follow(said: str, **places: str) -> str:
    """Run the command that the last `Next:` line names, with what it leaves to the reader put in."""
    (*_, command) = re.findall(r"Next: .*?sfumato (.*)", said)
    for name, place in places.items():
        command = re.sub(rf"\b{name}\b", place, command)
    return call(*shlex.split(command))


def stays(path: Path) -> None:
    """Write a register of hospital stays as a German office has it: semicolons, decimal commas, dates, gaps."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(SEED)
    patient = rng.integers(0, STAYS // 2, STAYS)
    start = pd.to_datetime("2022-01-01") + pd.to_timedelta(rng.integers(0, 700, STAYS), "D")
    frame = pd.DataFrame({
        "patient_id": patient, "age": rng.integers(0, 95, STAYS), "sex": np.where(patient % 2, "f", "m"),
        "admission": start.strftime("%d.%m.%Y"), "ward": rng.choice(["surgery", "medicine", "eye"], STAYS),
        "crp": rng.lognormal(2, 1, STAYS).round(1), "cost": rng.gamma(2, 900, STAYS).round(2),
    })  # fmt: skip
    frame.loc[rng.random(STAYS) < 0.1, "crp"] = np.nan
    frame.to_csv(path, sep=";", decimal=",", index=False)


def holder() -> None:
    """A data holder: draft, review, check, plan, fit, sample, look, publish; then the studio."""
    stays(Path("stays.csv"))
    call("--help")
    call("demo", "--help")
    said = call("schema", "draft", "stays.csv", "--out", "schema.yaml")
    follow(said)
    call("fit", "stays.csv", "--schema", "schema.yaml", "--epsilon", 1, "--out", "stays.sfm", code=2)  # a draft
    call("schema", "review", "schema.yaml", "--json")
    text = Path("schema.yaml").read_text(encoding="utf-8")
    text = re.sub(r"(?m)^  age: .*", "  age: {kind: integer, lower: 0, upper: 110}", text)  # what is public, put in
    Path("schema.yaml").write_text(re.sub(r"(?m)^draft: true.*\n", "", text), encoding="utf-8")
    said = call("schema", "check", "schema.yaml", "stays.csv")
    call("schema", "validate", "stays.csv", "--schema", "schema.yaml")
    call("ledger", "create", "stays.ledger", "--epsilon", 3, "--delta", "1e-5")
    said = follow(said, DATA="stays.csv", RELEASE="stays.sfm")
    follow(said)
    call("fit", "stays.csv", "--schema", "schema.yaml", "--epsilon", 1, "--delta", "1e-6", "--rows", "estimate",
         "--ledger", "stays.ledger", "--out", "second.sfm", "--json")  # fmt: skip
    call("ledger", "show", "stays.ledger")
    call("estimate", "stays.sfm", "mean", "age", "--by", "ward")
    call("report", "stays.sfm", "--out", "page.html")
    call("report", "stays.sfm", "--real", "stays.csv", "--out", "private.html")
    call("evaluate", "table", "stays.csv", "synthetic.csv", "--schema", "schema.yaml", "--target", "ward")
    call("publish", "sign", "--new-key", "office.pem")
    call("publish", "sign", "stays.sfm", "--key", "office.pem")
    call("publish", "pack", "stays.sfm", "--out", "folder", "--title", "Stays", "--license", "CC-BY-4.0",
         "--public-key", "office.pem.pub")  # fmt: skip
    assert (Path("folder") / "README.md").is_file()


def studio() -> None:
    """The same holder in a browser: the page answers, with the table on it."""
    import threading
    import urllib.request

    from sfumato.studio.server import Studio
    from sfumato.studio.session import StudioSession

    stays(Path("stays.csv"))
    page = Studio(StudioSession(Path("folder"), "stays.csv"))
    thread = threading.Thread(target=page.run)
    thread.start()
    try:
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(page.url, timeout=60) as answer:
            text = answer.read().decode()
    finally:
        page.stop()
        thread.join()
    assert "stays.csv" in text
    assert "Traceback" not in text


def analyst() -> None:
    """An analyst in Python: README's first call, short facts, a plan, answers with intervals, a natural mistake."""
    import numpy as np
    import pandas as pd

    import sfumato

    rng, n = np.random.default_rng(SEED), 5_000
    frame = pd.DataFrame({
        "age": rng.integers(18, 96, n), "sex": rng.choice(["f", "m"], n), "income": rng.lognormal(10, 0.9, n),
        "visits": rng.poisson(1.2, n), "returned": rng.random(n) < 0.3,
    })  # fmt: skip
    release = sfumato.fit(frame, epsilon=1.0, delta=1e-6)
    assert list(release.sample(10).columns) == list(frame.columns)
    facts = {"age": (18, 95), "sex": ["f", "m"], "income": (0.0, 500_000.0), "visits": (0, 20), "returned": "boolean"}
    schema = sfumato.describe(frame, facts, rows=n)
    print(schema)
    method = sfumato.MaxEntropy(epsilon=1.0)
    plan = str(method.plan(schema))
    assert len(plan.splitlines()) > 2
    assert "Stage(" not in plan
    release = sfumato.fit(frame, {"columns": facts, "rows": n}, epsilon=1.0, target="sex")
    mean = release.mean("age")
    assert mean.low < mean.value < mean.high
    assert mean.low - 2 < frame["age"].mean() < mean.high + 2
    print(mean, release.mean("age", by="sex"), release.ols("age ~ visits"), release.report)
    release.save("people.sfm")
    sfumato.load("people.sfm").certificate.verify()
    best = sfumato.tune(frame, schema, epsilon=1.0, grid={"marginal_share": [0.3, 0.5]}, mean_repetitions=1)
    print(best.certificate)
    mistakes(frame, schema)


def mistakes(frame: object, schema: object) -> None:
    """Mistakes that a newcomer makes are answered by what to write instead."""
    import sfumato
    from sfumato.errors import SfumatoError

    for wrong in ({"eps": 1.0}, {"epsilon": 1.0, "method": "max-entropi"}, {"epsilon": 1.0, "taget": "sex"}):
        try:
            sfumato.fit(frame, schema, **wrong)
        except SfumatoError as error:
            assert "Did you mean" in str(error), error  # noqa: PT017
        else:
            raise AssertionError(f"{wrong} was taken")


def reviewer() -> None:
    """A reviewer: gets a release, its signature and a key, and nothing of the data."""
    Path("office").mkdir()
    stays(Path("office/stays.csv"))
    call("fit", "office/stays.csv", "--epsilon", 1, "--delta", "1e-6", "--out", "stays.sfm")
    call("publish", "sign", "--new-key", "office/key")
    call("publish", "sign", "stays.sfm", "--key", "office/key")
    Path("key.pub").write_bytes(Path("office/key.pub").read_bytes())
    said = call("certificate", "stays.sfm", "--public-key", "key.pub")
    assert "The signature holds" in said
    assert "checksums match" in " ".join(said.split())
    assert '"signed_by"' in call("certificate", "stays.sfm", "--public-key", "key.pub", "--json")
    content = bytearray(Path("stays.sfm").read_bytes())
    content[len(content) // 2] ^= 1
    Path("forged.sfm").write_bytes(content)
    call("certificate", "forged.sfm", "--public-key", "key.pub", "--signature", "stays.sfm.sig", code=1)
    call("estimate", "stays.sfm", "--list")
    call("methods", "max-entropy")


def engineer() -> None:
    """An engineer: many rows in Parquet, in pieces and on two processes, without much memory; defaults in a file."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(SEED)
    numbers = {f"x{i}": rng.normal(0, 1, ROWS) for i in range(6)}
    table = pa.table({**numbers, "group": pa.array(rng.choice(["a", "b", "c"], ROWS)).dictionary_encode()})
    pq.write_table(table, "many.parquet", row_group_size=50_000)
    columns = "".join(f"  x{i}: {{kind: continuous, lower: -6, upper: 6}}\n" for i in range(6))
    Path("schema.yaml").write_text(f"rows: {ROWS}\ncolumns:\n{columns}  group: [a, b, c]\n", encoding="utf-8")
    Path("sfumato.toml").write_text('schema = "schema.yaml"\nepsilon = 1\n', encoding="utf-8")
    call("fit", "many.parquet", "--out", "many.sfm", "--workers", 2, "--json")
    call("sample", "many.sfm", "-n", ROWS, "--out", "synthetic.parquet")
    assert pq.ParquetFile("synthetic.parquet").metadata.num_rows == ROWS
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    assert most < MOST_MEMORY, f"{most >> 20} MiB of memory, expected less than {MOST_MEMORY >> 20}"


PATHS = {path.__name__: path for path in (holder, studio, analyst, reviewer, engineer)}

if __name__ == "__main__":
    PATHS[sys.argv[1]]()
