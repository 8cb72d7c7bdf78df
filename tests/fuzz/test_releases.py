"""Damaged and hostile releases through the command line: 250 cases; each is refused or sampled, in little memory."""

import copy
import hashlib
import json
import os
import random
import shutil
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from fixtures import tables
from fixtures.hostile import forge
from fuzz.cases import batches
from sfumato import MaxEntropy

CASES, BATCH = 100, 25
MANIFEST, ARRAYS = "manifest.json", "arrays.safetensors"

ODD_VALUES = [
    None, True, False, 0, -1, 1, 2, 0.5, -0.5, 1e308, -1e308, 1e-308, 2**63, 10**400, "", "x", "null", [], {},
    [1], ["x"], {"x": 1}, [[]], "..", "/etc/passwd",
    "table_softmax", "image_portrait", "csv", "int64", "string", "dictionary[int32](string)[ordered]",
    "timestamp[ns, tz=Nowhere]", "decimal128(99, 3)",
    "tensor[uint8](999999,999999)", "PLDAccountant", "RdpAccountant", "[red]", "\u0000", "\ud800", "a" * 5000,
    "arrays.safetensors", "measurements.0",
]  # fmt: skip


@pytest.fixture(scope="module")
def originals(remembered_accounts) -> list[tuple[dict, dict[str, np.ndarray]]]:
    releases = [
        MaxEntropy(epsilon=1.0).fit(tables.frame(), schema=tables.schema(), target="income"),
        MaxEntropy(epsilon=1.0).fit(tables.frame(), schema=tables.schema()),
        MaxEntropy(epsilon=1.0).fit(tables.images(), schema=tables.image_schema()),
    ]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for i, release in enumerate(releases):
            path = Path(folder) / str(i)
            release.save(path)
            found.append((json.loads((path / MANIFEST).read_text()), safetensors.numpy.load_file(path / ARRAYS)))
    return found


def damaged(random_: random.Random, manifest: dict, arrays: dict[str, np.ndarray]) -> dict[str, bytes]:
    """The files of a release with a few things wrong; the check sum is right unless it is what is wrong."""
    manifest, arrays = copy.deepcopy(manifest), {name: array.copy() for name, array in arrays.items()}
    kind = random_.choice(["manifest", "manifest", "manifest", "arrays", "arrays", "bytes"])
    if kind == "arrays":
        for _ in range(random_.randint(1, 2)):
            _change_array(random_, arrays)
    packed = safetensors.numpy.save(arrays)
    manifest["arrays"]["sha256"] = hashlib.sha256(packed).hexdigest()
    if kind == "manifest":
        nodes = [manifest, manifest["certificate"]]  # an earlier change may have taken the second away
        for _ in range(random_.randint(1, 3)):
            _change(random_, random_.choice(nodes))
        if random_.random() < 0.7:
            forge(manifest)  # else what is behind the hashes is never reached
    text = json.dumps(manifest).encode()
    if kind == "bytes":
        if random_.random() < 0.5:
            packed = _bitten(random_, packed)
            if random_.random() < 0.7:
                manifest["arrays"]["sha256"] = hashlib.sha256(packed).hexdigest()
                text = json.dumps(manifest).encode()
        else:
            text = _bitten(random_, text)
    return {MANIFEST: text, ARRAYS: packed}


def _change(random_: random.Random, node: object) -> None:
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))  # type: ignore[arg-type]
        if not keys:
            return
        key = random_.choice(keys)
        if isinstance(node[key], (dict, list)) and node[key] and random_.random() < 0.9:  # type: ignore[index]
            node = node[key]  # type: ignore[index]
            continue
        if random_.random() < 0.2:
            del node[key]  # type: ignore[attr-defined]
        else:
            node[key] = random_.choice(ODD_VALUES)  # type: ignore[index]
        return


def _change_array(random_: random.Random, arrays: dict[str, np.ndarray]) -> None:
    name = random_.choice(list(arrays))
    array = arrays[name]
    match random_.randint(0, 7):
        case 0:
            del arrays[name]
        case 1:
            arrays[name] = array[..., :-1] if array.ndim else np.zeros(3)
        case 2:
            arrays[name] = array.reshape(-1)
        case 3:
            arrays[name] = array.astype(random_.choice([np.float32, np.int64, np.float64, np.uint8, np.bool_]))
        case 4:
            arrays[name] = np.zeros((0, *array.shape[1:]), array.dtype)
        case 5:
            arrays[name] = np.full_like(array, random_.choice([0, -1, 1, 2**40]))
        case 6 if array.size:
            value = random_.choice([0, -1, 2**40, np.nan, np.inf, 1e300, 1e-320])
            finite = array.dtype.kind == "f" or (np.isfinite(value) and abs(value) < 2**62)
            array.reshape(-1)[random_.randrange(array.size)] = value if finite else 7
        case 7:
            arrays[name] = arrays[random_.choice(list(arrays))]


def _bitten(random_: random.Random, content: bytes) -> bytes:
    match random_.randint(0, 3):
        case 0:
            return content[: random_.randrange(len(content))]
        case 1:
            return content + random_.randbytes(9)
        case _:
            place = random_.randrange(min(len(content), 4000))
            return content[:place] + random_.randbytes(random_.randint(1, 8)) + content[place + 1 :]


def write(random_: random.Random, files: dict[str, bytes], folder: Path) -> Path:
    """Write them as a directory or an archive, now and then an odd one."""
    if random_.random() < 0.5:
        path = folder / "r"
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        for name, content in files.items():
            (path / name).write_bytes(content)
        if random_.random() < 0.1:
            odd = path / random_.choice(list(files))
            odd.unlink()
            random_.choice([odd.mkdir, lambda: odd.symlink_to("/dev/zero"), lambda: os.mkfifo(odd), lambda: None])()
        return path
    path = folder / "r.sfm"
    path.unlink(missing_ok=True)
    stored = zipfile.ZIP_STORED if random_.random() < 0.9 else zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(path, "w", stored) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        if random_.random() < 0.1:
            archive.writestr(random_.choice(["../evil", "/evil", "more.txt"]), b"x")
    if random_.random() < 0.15:
        path.write_bytes(_bitten(random_, path.read_bytes()))
    return path


@pytest.mark.parametrize("batch", batches(CASES, BATCH))
def test_damaged_release(speak, tmp_path, originals, batch):
    refused = 0
    for case in range(batch * BATCH, (batch + 1) * BATCH):
        random_ = random.Random(case)
        manifest, arrays = random_.choice(originals)
        path = write(random_, damaged(random_, manifest, arrays), tmp_path)
        codes = {
            speak(case, "certificate", path, "--json"),
            speak(case, "certificate", path),
        }
        for name in ("o.csv", "o.parquet", "o.npz"):
            code = speak(case, "sample", path, "-n", 3, "--seed", 0, "--out", tmp_path / name, "--overwrite")
            codes.add(code)
        refused += 1 in codes
        assert {file.name for file in tmp_path.iterdir()} <= {"r", "r.sfm", "o.csv", "o.parquet", "o.npz"}
    assert refused > BATCH / 3


def _in(part: str, **changes: object):
    """Change entries of a part of a certificate; of the first one, if it is a list."""

    def change(certificate: dict) -> None:
        found = certificate[part]
        (found[0] if isinstance(found, list) else found).update(changes)

    return change


SAMPLED = {"type": "poisson_sampled_gaussian", "count": 10**7}
HOSTILE = {
    "hardly any noise": _in("events", noise_multiplier=1e-4),
    "little noise": _in("events", noise_multiplier=0.02),
    "more noise than a float holds": _in("events", noise_multiplier=1e300),
    "a billion times": _in("events", count=10**9),
    "a large sample": _in("events", **SAMPLED, sampling_probability=0.5, noise_multiplier=0.05),
    "a small sample": _in("events", **SAMPLED, sampling_probability=1e-9, noise_multiplier=0.02),
    "a finer grid": _in("accountant", value_discretization_interval=1e-9),
    "a grid of negative step": _in("accountant", value_discretization_interval=-1),
    "a grid in words": _in("accountant", value_discretization_interval="fine"),
    "another accountant": _in("accountant", name="Xerxes"),
    "replacing for words": _in("replace_one", epsilon="small"),
    "a unit of no size": _in("unit", max_rows="many"),
    "another stage": _in("stages", name="other"),
    "a share in words": _in("stages", share="half"),
    "a stage that is none": lambda certificate: certificate.update(stages=[1]),
    "no events": lambda certificate: certificate.update(events=[]),
    "many events": lambda certificate: certificate.update(events=certificate["events"] * 3000),
    "an impossible delta": lambda certificate: certificate.update(delta=2.0),
    "an epsilon beyond floats": lambda certificate: certificate.update(epsilon=10**400),
    "an epsilon below the truth": lambda certificate: certificate.update(epsilon=0.5),
    "rows beyond number": lambda certificate: certificate.update(n_public=10**400),
    "assumptions that are none": lambda certificate: certificate.update(assumptions=[{"a": 1}]),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=list(HOSTILE))
def test_hostile_certificate(speak, tmp_path, originals, change):
    """Checking a stranger's certificate neither fails in an unforeseen way nor runs for ever."""
    manifest, arrays = copy.deepcopy(originals[0])
    change(manifest["certificate"])
    packed = safetensors.numpy.save(arrays)
    manifest["arrays"]["sha256"] = hashlib.sha256(packed).hexdigest()
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    (tmp_path / "r" / ARRAYS).write_bytes(packed)
    assert speak("hostile", "certificate", tmp_path / "r") == 1
