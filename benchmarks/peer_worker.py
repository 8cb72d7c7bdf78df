"""One fit and one sample in a process of its own, for `peers.py`: run there by either environment's Python.

    python peer_worker.py JOB.json

The job names its files: what to fit, where the sample and the report go. A peer reads and writes codes 0, 1, ... (CSV)
and the public numbers of codes; ConditionalGaussian reads and writes the table itself (Parquet) and the schema.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


def house(job: dict[str, Any]) -> dict[str, Any]:
    import sfumato

    frame = pd.read_parquet(job["data"])
    schema = sfumato.Schema.load(job["schema"])
    synthesizer = sfumato.ConditionalGaussian(epsilon=job["epsilon"], delta=job["delta"])
    start = time.perf_counter()
    release = synthesizer.fit(frame, schema=schema, target=job["target"])
    fitted = time.perf_counter()
    sample = release.sample(len(frame))
    sampled = time.perf_counter()
    sample.to_parquet(job["sample"])
    return {"fit_seconds": fitted - start, "sample_seconds": sampled - fitted}


def public_transformer(sizes: list[int]) -> Any:
    """Return SmartNoise's transformer of codes, fitted to a made-up table that holds every code.

    Left to itself SmartNoise would learn the codes from the records, which is not private.
    """
    from snsynth.transform import LabelTransformer
    from snsynth.transform.table import TableTransformer

    every = np.arange(max(sizes))
    transformer = TableTransformer([LabelTransformer(nullable=False) for _ in sizes])
    transformer.fit(pd.DataFrame({f"{i}": every % size for i, size in enumerate(sizes)}))
    if transformer.needs_epsilon or list(transformer.cardinality) != sizes:
        sys.exit("Expected a transformer of the public codes that needs no budget.")
    return transformer


def peer(job: dict[str, Any]) -> dict[str, Any]:
    from snsynth.aim import AIMSynthesizer
    from snsynth.mst import MSTSynthesizer

    frame = pd.read_csv(job["data"])
    transformer = public_transformer(list(job["domain"].values()))
    frame.columns = [f"{i}" for i in range(frame.shape[1])]
    kind = {"mst": MSTSynthesizer, "aim": AIMSynthesizer}[job["method"]]
    synthesizer = kind(epsilon=job["epsilon"], delta=job["delta"])
    start = time.perf_counter()
    synthesizer.fit(frame, transformer=transformer, preprocessor_eps=0.0)
    fitted = time.perf_counter()
    sample = synthesizer.sample(len(frame))
    sampled = time.perf_counter()
    if synthesizer.epsilon != job["epsilon"] or transformer.odometer.spent[0]:
        sys.exit("Expected the whole epsilon to go to synthesis.")
    sample.columns = list(job["domain"])
    sample.to_csv(job["sample"], index=False)
    return {"fit_seconds": fitted - start, "sample_seconds": sampled - fitted}


def peak_gib() -> float:
    """Peak resident memory; not by getrusage, whose peak counts the parent's memory before exec."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 2**20


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text())
    report = house(job) if job["method"] == "conditional-gaussian" else peer(job)
    used = resource.getrusage(resource.RUSAGE_SELF)
    report |= {"peak_gib": peak_gib(), "cpu_seconds": used.ru_utime + used.ru_stime}
    Path(job["report"]).write_text(json.dumps(report))


if __name__ == "__main__":
    main()
