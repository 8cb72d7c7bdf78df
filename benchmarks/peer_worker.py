"""One fit and one sample in a process of its own, for `peers.py`: run there by either environment's Python.

    python peer_worker.py JOB.json

The job names its files: what to fit, where the sample and the report go. A peer reads and writes codes 0, 1, ... (CSV)
and the public numbers of codes; MaxEntropy reads and writes the table itself (Parquet) and the schema.
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
    synthesizer = sfumato.MaxEntropy(epsilon=job["epsilon"], delta=job["delta"])
    start = time.perf_counter()
    release = synthesizer.fit(frame, schema=schema, target=job["target"])
    fitted = time.perf_counter()
    sample = release.sample(len(frame))
    sampled = time.perf_counter()
    sample.to_parquet(job["sample"])
    return {"fit_seconds": fitted - start, "sample_seconds": sampled - fitted}


def public_transformer(sizes: list[int], *, one_hot: bool) -> Any:
    """Return SmartNoise's transformer of codes, fitted to a made-up table that holds every code.

    Left to itself SmartNoise would learn the codes from the records, which is not private.
    """
    from snsynth.transform import ChainTransformer, LabelTransformer, OneHotEncoder
    from snsynth.transform.table import TableTransformer

    every = np.arange(max(sizes))

    def column() -> Any:
        labels = LabelTransformer(nullable=False)
        return ChainTransformer([labels, OneHotEncoder()]) if one_hot else labels

    transformer = TableTransformer([column() for _ in sizes])
    transformer.fit(pd.DataFrame({f"{i}": every % size for i, size in enumerate(sizes)}))
    if transformer.needs_epsilon or (not one_hot and list(transformer.cardinality) != sizes):
        sys.exit("Expected a transformer of the public codes that needs no budget.")
    return transformer


def smartnoise(job: dict[str, Any]) -> Any:
    """Return a SmartNoise synthesizer with the settings it comes with."""
    epsilon, delta = job["epsilon"], job["delta"]
    if job["method"] == "dp-ctgan":
        from snsynth.pytorch.nn import DPCTGAN

        return DPCTGAN(epsilon=epsilon, delta=delta, verbose=False)
    if job["method"].startswith("mwem"):
        from snsynth.mwem import MWEMSynthesizer

        # Left to itself it makes one histogram of all columns; columns in threes are what its documentation offers.
        return MWEMSynthesizer(epsilon=epsilon, **({"split_factor": 3} if job["method"] == "mwem-by-threes" else {}))
    from snsynth.aim import AIMSynthesizer
    from snsynth.mst import MSTSynthesizer

    return {"mst": MSTSynthesizer, "aim": AIMSynthesizer}[job["method"]](epsilon=epsilon, delta=delta)


def peer(job: dict[str, Any]) -> dict[str, Any]:
    """Fit and sample by a method of SmartNoise."""
    frame = pd.read_csv(job["data"])
    transformer = public_transformer(list(job["domain"].values()), one_hot=job["method"] == "dp-ctgan")
    frame.columns = [f"{i}" for i in range(frame.shape[1])]
    synthesizer = smartnoise(job)
    start = time.perf_counter()
    synthesizer.fit(frame, transformer=transformer, preprocessor_eps=0.0)
    fitted = time.perf_counter()
    sample = pd.DataFrame(synthesizer.sample(len(frame)))
    sampled = time.perf_counter()
    if synthesizer.epsilon != job["epsilon"] or transformer.odometer.spent[0]:
        sys.exit("Expected the whole epsilon to go to synthesis.")
    sample.columns = list(job["domain"])
    sample.astype(int).to_csv(job["sample"], index=False)
    report = {"fit_seconds": fitted - start, "sample_seconds": sampled - fitted}
    if job["method"] == "dp-ctgan":  # it looks at its account before an epoch, so the last one is over the budget
        report["epsilon_by_own_account"] = float(synthesizer.epsilon_list[-1])
    return report


def dpmm(job: dict[str, Any]) -> dict[str, Any]:
    """Fit and sample by PrivBayes or MST of dpmm, with the settings they come with."""
    from dpmm.pipelines import MSTPipeline, PrivBayesPipeline

    kind = {"privbayes": PrivBayesPipeline, "dpmm-mst": MSTPipeline}[job["method"]]
    frame = pd.read_csv(job["data"])
    # the codes are public, so its own private binning is left out; one process, for the limits are on one
    pipeline = kind(epsilon=job["epsilon"], delta=job["delta"], n_jobs=1, disable_processing=True)
    start = time.perf_counter()
    pipeline.fit(frame, domain=job["domain"])
    fitted = time.perf_counter()
    sample = pipeline.generate(len(frame))
    sampled = time.perf_counter()
    sample[list(job["domain"])].astype(int).to_csv(job["sample"], index=False)
    return {"fit_seconds": fitted - start, "sample_seconds": sampled - fitted}


def dpsynth(job: dict[str, Any]) -> dict[str, Any]:
    """Fit and sample by SWIFT or AIM of dpsynth, with the settings they come with."""
    import mbi
    from dpsynth.discrete_mechanisms import AIMConfig, DiscreteConfig, SWIFTConfig

    kind = {"dpsynth-swift": SWIFTConfig, "dpsynth-aim": AIMConfig}[job["method"]]
    frame, domain = pd.read_csv(job["data"]), job["domain"]
    data = mbi.Dataset({name: frame[name].to_numpy() for name in domain}, mbi.Domain.fromdict(domain))
    start = time.perf_counter()
    mechanism = DiscreteConfig(mechanism=kind()).configure(zcdp_rho=job["rho"])
    # it samples as it fits, as many rows as its own noisy count says
    sample = pd.DataFrame(mechanism(np.random.default_rng(), data).synthetic_data.to_dict())
    fitted = time.perf_counter()
    sample[list(domain)].astype(int).to_csv(job["sample"], index=False)
    return {"fit_seconds": fitted - start, "sample_seconds": 0.0}


def peak_gib() -> float:
    """Peak resident memory; not by getrusage, whose peak counts the parent's memory before exec."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 2**20


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text())
    runs = {"max-entropy": house, "privbayes": dpmm, "dpmm-mst": dpmm, "dpsynth-swift": dpsynth, "dpsynth-aim": dpsynth}
    report = runs.get(job["method"], peer)(job)
    used = resource.getrusage(resource.RUSAGE_SELF)
    report |= {"peak_gib": peak_gib(), "cpu_seconds": used.ru_utime + used.ru_stime}
    Path(job["report"]).write_text(json.dumps(report))


if __name__ == "__main__":
    main()
