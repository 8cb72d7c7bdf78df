"""What each extra is for, done once on a tiny table, in an environment that has this extra alone: see `extras.py`.

python promises.py EXTRA ROOT
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import packages_distributions, requires
from pathlib import Path

ROWS = 200
SCHEMA = f"""
rows: {ROWS}
columns:
  age: {{kind: integer, lower: 0, upper: 99}}
  member: boolean
"""
PICTURES = f"""
rows: {ROWS}
columns:
  x: {{kind: image, shape: [4, 4], dtype: uint8}}
  y: {{kind: categorical, categories: [0, 1]}}
"""
FIT = ("fit", "people.csv", "--schema", "schema.yaml", "--epsilon", "5", "--out", "people.sfm", "--overwrite")
FIT_PICTURES = ("fit", "pictures.npz", "--schema", "pictures.yaml", "--epsilon", "5", "--out", "pictures.sfm")
SAMPLE = ("sample", "people.sfm", "-n", "200", "--out", "synthetic.csv")


def inputs() -> None:
    """Write a table and pictures, with their schemas."""
    import numpy as np

    rng = np.random.default_rng(0)
    age = rng.integers(0, 100, ROWS)
    lines = [f"{a},{str(a > b).lower()}" for a, b in zip(age, rng.integers(0, 100, ROWS), strict=True)]
    Path("people.csv").write_text("age,member\n" + "\n".join(lines) + "\n", encoding="utf-8")
    Path("schema.yaml").write_text(SCHEMA, encoding="utf-8")
    np.savez("pictures.npz", x=rng.integers(0, 256, (ROWS, 4, 4), dtype=np.uint8), y=rng.integers(0, 2, ROWS))
    Path("pictures.yaml").write_text(PICTURES, encoding="utf-8")


def python(*words: str | Path) -> None:
    """Run a Python of this environment, which has to end well."""
    subprocess.run([sys.executable, *map(str, words)], check=True)


def sfumato(*words: str) -> None:
    """Run a command, which has to end well."""
    python("-m", "sfumato", *words)


def fit(data: object, **options: object) -> None:
    """Fit the table in another form, and see that it is released."""
    import sfumato as package

    release = package.MaxEntropy(epsilon=5.0).fit(data, schema="schema.yaml", **options)  # type: ignore[arg-type]
    assert release.sample(5).shape == (5, 2)


def import_modules(extra: str) -> None:
    """Import every module of the packages that the extra names."""
    wanted = {
        re.split(r"[\[<>=~!; ]", line, maxsplit=1)[0].lower().replace("_", "-")
        for line in requires("sfumato") or []
        if re.search(rf"extra == ['\"]{extra}['\"]", line)
    }
    for module, packages in packages_distributions().items():
        if module.isidentifier() and {name.lower().replace("_", "-") for name in packages} & wanted:
            importlib.import_module(module)


def core(_: Path) -> None:
    sfumato(*FIT)
    sfumato(*SAMPLE)
    sfumato("report", "people.sfm", "--out", "page.html")
    sfumato(*FIT, "--workers", "2")


def evaluate(_: Path) -> None:
    from sfumato.estimators import PrivateKMeans

    sfumato(*FIT)
    sfumato(*SAMPLE)
    sfumato("evaluate", "table", "people.csv", "synthetic.csv", "--schema", "schema.yaml", "--target", "member")
    assert PrivateKMeans.__name__


def regression(_: Path) -> None:
    sfumato(*FIT)
    sfumato("estimate", "people.sfm", "age ~ member")


def studio(_: Path) -> None:
    import threading
    import urllib.request

    from sfumato.studio.server import Studio
    from sfumato.studio.session import StudioSession

    page = Studio(StudioSession(Path("folder"), "people.csv"))
    thread = threading.Thread(target=page.run)
    thread.start()
    try:
        # the address with the secret sets a cookie, and leads to one without it
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(page.url, timeout=60) as answer:
            assert answer.status == 200
    finally:
        page.stop()
        thread.join()


def nets(_: Path) -> None:
    sfumato(*FIT, "--method", "p3gm")


def polars(_: Path) -> None:
    import polars as frames

    fit(frames.read_csv("people.csv"))


def images(_: Path) -> None:
    sfumato(*FIT_PICTURES)
    sfumato("sample", "pictures.sfm", "-n", "5", "--out", "folder")


def demo(_: Path) -> None:
    sfumato("demo", "--out", "demo")


def report(_: Path) -> None:
    sfumato(*FIT_PICTURES)
    sfumato("report", "pictures.sfm", "--out", "page.html")


def databases(_: Path) -> None:
    import duckdb

    duckdb.sql("CREATE TABLE people AS SELECT * FROM 'people.csv'")
    fit(duckdb.table("people"))


def remote(_: Path) -> None:
    import functools
    import threading
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(Path.cwd()))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        fit(f"http://127.0.0.1:{server.server_port}/people.csv")
        server.shutdown()


def dask(_: Path) -> None:
    import distributed

    from sfumato.engines import Dask

    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        fit(str(Path("people.csv").resolve()), engine=Dask(client))


def spark(_: Path) -> None:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    fit(session.read.csv("people.csv", header=True, inferSchema=True))
    session.stop()


def test(root: Path) -> None:
    python("-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", "-qq", root / "tests")
    python("-m", "pytest", "-q", "-p", "no:cacheprovider", root / "tests" / "columns" / "test_kinds.py")


def lint(root: Path) -> None:
    python("-m", "ruff", "check", root)
    python("-m", "pyright", "--version")
    subprocess.run([Path(sys.executable).with_name("lint-imports")], cwd=root, check=True)


def docs(root: Path) -> None:
    python("-m", "sphinx", "-W", "-q", "-d", "read", "-b", "html", root / "docs", "pages")


def bench(root: Path) -> None:
    folder = root / "benchmarks"
    python(folder / "em.py", "--rows", "2000", "--repeats", "1", "--columns", "5", "--components", "2")
    python(folder / "dpgm.py", "--steps", "1", "--batch", "50", "--clusters", "2")
    python(folder / "mixing.py", "--mixtures", "200", "--degree", "8", "--records", "200")
    python(folder / "large_table.py", "--rows", "2000")


def papers(root: Path) -> None:
    python(root / "papers" / "dp_em" / "compositions.py", "--picture", "compositions.png")


PROMISES: dict[str, Callable[[Path], None]] = {
    do.__name__: do
    for do in (
        core, evaluate, regression, studio, nets, polars, images, demo, report, databases, remote, dask, spark, test,
        lint, docs, bench, papers,
    )
}  # fmt: skip

if __name__ == "__main__":
    extra_, root_ = sys.argv[1:]
    inputs()
    import_modules(extra_)
    PROMISES[extra_](Path(root_))
