"""Workers: they answer, whatever happens, and an answer says nothing of a record."""

from __future__ import annotations

import logging
import pickle
import threading
import warnings

import numpy as np
import pytest

from harness.deadly import SECRET
from harness.engine_cases import SCHEMA, table
from sfumato.engines.passes import ChunkSource, Pass, shares
from sfumato.engines.work import Answer, Outcome, answered, machine, new_key, shared_part, unmasked, work
from sfumato.errors import DataError, EngineError
from sfumato.fitting.arguments import RowCount
from sfumato.io.sources import open_source
from sfumato.records.engine import reduce
from sfumato.records.private import PrivateData

KEY = new_key()
SHARED = shared_part(KEY, RowCount(), None)


def records() -> PrivateData:
    return PrivateData(open_source(table()), SCHEMA)


def raises(error: BaseException):
    def opened() -> PrivateData:
        warnings.warn(SECRET, stacklevel=1)
        raise error

    return opened


def test_a_worker_answers_with_its_sum_under_a_pad():
    answer = Answer.of(work(SHARED, 7, pickle.dumps(records())))
    assert (answer.outcome, answer.piece, answer.machine) == (Outcome.DONE, 7, machine())
    assert unmasked(answer.words, KEY, [7]) == [3000]
    assert 3000 not in answer.words


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ValueError(SECRET), Outcome.FAILED),
        (DataError(SECRET), Outcome.UNREADABLE),
        (FileNotFoundError(SECRET), Outcome.UNREADABLE),
        (MemoryError(SECRET), Outcome.NO_MEMORY),
        (KeyboardInterrupt(SECRET), Outcome.FAILED),
        (SystemExit(SECRET), Outcome.FAILED),
    ],
)
def test_a_worker_never_raises_warns_or_speaks(error, outcome, capfd, caplog, recwarn):
    caplog.set_level(logging.DEBUG)
    packed = answered(SHARED, 3, raises(error))
    answer = Answer.of(packed)
    assert (answer.outcome, answer.piece, answer.words.size) == (outcome, 3, 0)
    out, err = capfd.readouterr()
    assert SECRET.encode() not in packed
    assert not out + err + caplog.text
    assert not recwarn.list


def test_work_that_cannot_be_read_is_a_failure():
    assert Answer.of(work(SHARED, 3, b"no pickle")).outcome == Outcome.FAILED


def test_another_version_is_told_before_anything_is_unpickled():
    key, _, version = SHARED
    other = (key, b"no pickle", version + "x")
    assert Answer.of(work(other, 3, b"no pickle")).outcome == Outcome.OTHER_VERSION


@pytest.mark.parametrize("packed", [b"", b"\x00" * 10, b"\xff" * 41, b"\x00" * 44])
def test_bytes_that_are_no_answer_are_a_failure(packed: bytes):
    assert Answer.of(packed).outcome == Outcome.FAILED


def begun(n: int = 3) -> tuple[Pass, list[bytes]]:
    summing = Pass(RowCount(), None, "the table")
    parts = [pickle.dumps(part) for part in chunks(1000)]
    return summing, [work(summing.shared, i, part) for i, part in enumerate(parts[:n])]


def chunks(rows: int) -> list[PrivateData]:
    source = open_source(table(), chunk_rows=rows)
    return [records().over(ChunkSource.of(chunk, source)) for chunk in source.chunks()]


def test_a_pass_is_the_sum_of_its_pieces_in_any_order():
    summing, answers = begun()
    for answer in reversed(answers):
        summing.take(answer)
    assert summing.total(range(3)) == reduce(RowCount(), records()).whole_in_mechanism() == 3000


@pytest.mark.parametrize("answers", [[0, 1], [0, 1, 1], [0, 1, 2, 2], [], [0, 1, 2, 0]])
def test_lost_and_doubled_answers_end_the_pass(answers: list[int]):
    summing, found = begun()
    for i in answers:
        summing.take(found[i])
    with pytest.raises(EngineError, match="lost, doubled, or of another pass"):
        summing.total(range(3))


def test_an_answer_under_anothers_number_ends_the_pass():
    summing, found = begun()
    other = Answer.of(found[1])
    for answer in (found[0], found[1], Answer(other.outcome, 2, other.machine, other.words).packed()):
        summing.take(answer)
    with pytest.raises(EngineError, match="lost, doubled, or of another pass"):
        summing.total(range(3))


def test_an_answer_of_an_earlier_pass_ends_the_pass():
    summing, found = begun()
    _, stale = begun()
    for answer in (*found[:2], stale[2]):
        summing.take(answer)
    with pytest.raises(EngineError, match="lost, doubled, or of another pass"):
        summing.total(range(3))


def test_workers_of_two_kinds_end_the_pass():
    summing, found = begun()
    summing.take(found[0])
    other = Answer.of(found[1])
    with pytest.raises(EngineError, match="workers of one kind"):
        summing.take(Answer(other.outcome, other.piece, b"x" * 32, other.words).packed())


@pytest.mark.parametrize(
    ("outcome", "error", "said"),
    [
        (Outcome.UNREADABLE, DataError, "Cannot read the table on a worker"),
        (Outcome.NO_MEMORY, EngineError, "too little memory"),
        (Outcome.OTHER_VERSION, EngineError, "another version of Sfumato"),
        (Outcome.FAILED, EngineError, "it does not say more"),
    ],
)
def test_every_failure_is_one_clear_error(outcome, error, said):
    summing, _ = begun(0)
    with pytest.raises(error, match=said):
        summing.take(Answer(outcome, 0, machine(), np.empty(0, np.uint64)).packed())


def test_a_pass_over_nothing_is_zero():
    summing, _ = begun(0)
    assert summing.total(()) == 0


def test_a_chunk_travels_without_the_rows_around_it():
    source = open_source(table(), chunk_rows=10)
    chunk = next(source.chunks())
    packed = pickle.dumps(ChunkSource.of(chunk, source))
    assert len(packed) < 3000
    assert next(pickle.loads(packed).chunks()).n_rows == 10


def test_shares_hold_every_piece_once():
    data = records()
    pieces = [ChunkSource.of(chunk, data.source) for chunk in open_source(table(), chunk_rows=100).chunks()]
    for most in (1, 4, 7, 30, 100):
        found = shares(data, pieces, most)
        assert len(found) == min(most, 30)
        total = sum(int(reduce(RowCount(), share).whole_in_mechanism()) for share in found)
        assert total == 3000


def test_no_thread_lets_out_the_warnings_of_another(recwarn):
    """Warning filters belong to the process: a worker that ends must not put them back while another still reads."""
    inside, ended = threading.Event(), threading.Event()

    def slow() -> PrivateData:
        inside.set()
        assert ended.wait(30)
        warnings.warn(SECRET, stacklevel=1)
        return records()

    def quick() -> PrivateData:
        other.start()
        assert inside.wait(30)
        return records()

    other = threading.Thread(target=answered, args=(SHARED, 1, slow))
    answered(SHARED, 0, quick)
    ended.set()
    other.join(30)
    assert not other.is_alive()
    assert not recwarn.list
