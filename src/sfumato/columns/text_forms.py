r"""Forms of a text: a number and its decimals, a code, a truth value, no value, or an odd number such as `<5`.

    7   7.0   -0   +5   .5   5.   1e3   −5   ５        numbers
    007   +49301234567   A12   12-345   a@b.org       codes: text that a number would not give back
    <5   90+   >=100   inf   #DIV/0!                  odd numbers: something else stands beside the digits, or none do
    (empty)   NA   NaN   null   None                  no value, in files that have no other word for it

All functions are elementwise: what a text is never depends on the texts beside it. They take Arrow text without white
space around it, as `cells.read_text` gives it, and a null is none of these. Dates are in `date_forms`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MISSING_TOKENS = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
"""Text that stands for no value in text files, unless a schema says otherwise."""

MISSING_MARKS = ("?", "-", "--", ".", "n/a", "n.a.", "#N/A", "<NA>", "NaT", "k.A.")
"""Text that people write for no value, beside the tokens: what a draft looks for."""

TRUTHS = (("false", "true"), ("False", "True"), ("FALSE", "TRUE"))
"""The words that programs write for false and true."""

_NUMBER = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_PARTS = r"^[+-]?(?P<whole>[0-9]*)\.?(?P<after>[0-9]*)(?:[eE](?P<power>[+-]?[0-9]{1,4}))?$"
_SHORT_WHOLE = r"^[+-]?[0-9]{1,18}$"  # 18 digits always fit int64
_ZEROS = r"^[+-]?0[0-9]"
_CALLING = r"^\+[0-9]{7,}$"
_GROUPS = r"^[+(]?[0-9]+(?:[-/. ()]+[0-9]+)+$"
_ADDRESS = r"^[^@\s]+@[^@\s]+$"
_INFINITE = r"^[+-]?(?:(?i:inf|infinity)|\x{221e})$"
_LIMIT = r"^(?:(?P<before><=?|>=?|[\x{2264}\x{2265}]) ?(?P<number>[+-]?[0-9]*\.?[0-9]+)|(?P<from>[0-9]*\.?[0-9]+) ?\+)$"
_MARKED = r"^(?:(?:~|\x{2248}|ca?\.) ?[0-9]*\.?[0-9]+|[+-]?[0-9]*\.?[0-9]+(?: ?[*\x{2020}\x{2021}]+| [HL]{1,2}))$"
_CLOCK = r"[0-9]+:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
_DURATION = rf"^[+-]?(?:[0-9]+ ?days?(?:,? \+?{_CLOCK})?|{_CLOCK})$"
_ERROR = r"^#(?:DIV/0!|N/A|NAME\?|NULL!|NUM!|REF!|VALUE!)$"
_SIGNS = {"\u2212": "-", "\ufe63": "-", "\uff0d": "-", "\uff0b": "+", "\ufe62": "+", "\u066b": ".", "\uff0e": "."}
_TRUTH_WORDS = tuple(word for pair in TRUTHS for word in pair)
_INT64 = (-(2**63), 2**63 - 1)
_LARGEST_FLOAT_IN_INT64 = float(2**63 - 1024)
_LONGEST = 400  # characters of a number that is read exactly; a float64 has no more digits than that


def ascii_text(text: pa.Array) -> pa.Array:
    """Return text with the digits and signs of every script as those of ASCII.

    Example:
        >>> ascii_text(pa.array(["\u22125", "\u0664\u0662", "caf\u00e9"])).to_pylist()
        ['-5', '42', 'café']
    """
    foreign = pc.fill_null(pc.invert(pc.string_is_ascii(text)), False)
    if not pc.any(foreign).as_py():
        return text
    return each_word(text, text.type, lambda word: word if word.isascii() else word.translate(_digits()))


def each_word(words: pa.Array, storage: pa.DataType, become: Callable[[Any], object]) -> pa.Array:
    """Return values of a type that a function makes of words, called once for each distinct one; null where one is."""
    coded = words.dictionary_encode()
    values = [None if word is None else become(word) for word in coded.dictionary.to_pylist()]
    return pa.array(values, storage).take(coded.indices)


def is_number(text: pa.Array) -> np.ndarray:
    """Return which texts are finite plain numbers: `7`, `-7.50`, `+5`, `.5`, `5.`, `1e3`, and `007`.

    Example:
        >>> is_number(pa.array(["7.0", ".5", "1e3", "007", "1,5", "<5", "inf", None])).tolist()
        [True, True, True, True, False, False, False, False]
    """
    return _matches(ascii_text(text), _NUMBER)


def decimals(text: pa.Array) -> np.ndarray:
    """Return how many decimals are written, int64: 0 for whole numbers however they are written, -1 for no number.

    Example:
        >>> decimals(pa.array(["7", "7.0", "7.50", "1e3", "1.25e1", "2.5e-3", "A"])).tolist()
        [0, 0, 2, 0, 1, 4, -1]
    """
    text = ascii_text(text)
    parts = pc.extract_regex(text, pattern=_PARTS)
    after = parts.field("after")
    power = pc.replace_substring_regex(parts.field("power"), r"^\+", "")
    power = pc.if_else(pc.equal(pc.fill_null(power, ""), ""), "0", power).cast(pa.int64())
    written = _whole(pc.subtract(pc.utf8_length(after).cast(pa.int64()), power))
    needed = _whole(pc.subtract(pc.utf8_length(pc.ascii_rtrim(after, "0")).cast(pa.int64()), power))
    zero = _matches(pc.binary_join_element_wise(parts.field("whole"), after, pa.scalar("", after.type)), "^0+$")
    digits = np.where((needed <= 0) | zero, 0, written)  # `0e-9` is whole
    return np.where(_matches(text, _NUMBER), np.maximum(digits, 0), -1)


def is_whole(text: pa.Array) -> np.ndarray:
    """Return which texts are whole numbers, however they are written: `7`, `7.0`, `1e3`.

    Example:
        >>> is_whole(pa.array(["7", "7.0", "1e3", "7.5"])).tolist()
        [True, True, True, False]
    """
    return decimals(text) == 0


def has_leading_zeros(text: pa.Array) -> np.ndarray:
    """Return which numbers have zeros before their digits, which the number itself would not give back.

    Example:
        >>> has_leading_zeros(pa.array(["007", "00", "0", "0.5", "-01"])).tolist()
        [True, True, False, False, True]
    """
    text = ascii_text(text)
    return _matches(text, _ZEROS) & _matches(text, _NUMBER)


def is_calling(text: pa.Array) -> np.ndarray:
    """Return which texts are a number to call, with the sign of an international one.

    Example:
        >>> is_calling(pa.array(["+49301234567", "+5", "49301234567"])).tolist()
        [True, False, False]
    """
    return _matches(ascii_text(text), _CALLING)


def is_code(text: pa.Array) -> np.ndarray:
    """Return which texts are codes: with leading zeros, to call or to write to, of digits and letters, in groups.

    Example:
        >>> is_code(pa.array(["007", "+49301234567", "V57", "12-345", "a@b.org", "7", "1e3", "red", "<5"])).tolist()
        [True, True, True, True, True, False, False, False, False]
    """
    plain = ascii_text(text)
    number = _matches(plain, _NUMBER)
    mixed = _matches(plain, "[0-9]") & _matches(plain, r"\p{L}") & ~_matches(plain, _ERROR)
    grouped = _matches(plain, _GROUPS) | _matches(plain, _ADDRESS)
    return (number & (has_leading_zeros(plain) | is_calling(plain))) | (~number & (mixed | grouped))


def odd_numbers(text: pa.Array) -> pa.Array:
    """Return the forms of texts beside numbers: `limit`, `marked`, `infinite`, `error`, or null for anything else.

    Example:
        >>> odd_numbers(pa.array(["<5", "90+", ">=100", "~40", "5.7*", "-inf", "#DIV/0!", "7", "red"])).to_pylist()
        ['limit', 'limit', 'limit', 'marked', 'marked', 'infinite', 'error', None, None]
    """
    plain = ascii_text(text)
    forms = np.full(len(text), None, dtype=object)
    for form, pattern in (("limit", _LIMIT), ("marked", _MARKED), ("infinite", _INFINITE), ("error", _ERROR)):
        forms[_matches(plain, pattern)] = form
    return pa.array(forms.tolist(), pa.string())


def limits(text: pa.Array) -> np.ndarray:
    """Return the number of a limit, float64: 5 of `<5`, 90 of `90+`; NaN of other texts.

    Example:
        >>> limits(pa.array(["<5", "90+", ">= 100", "7"])).tolist()
        [5.0, 90.0, 100.0, nan]
    """
    parts = pc.extract_regex(ascii_text(text), pattern=_LIMIT)
    number, first = parts.field("number"), parts.field("from")
    return floats(pc.if_else(pc.equal(pc.fill_null(number, ""), ""), first, number))


def is_duration(text: pa.Array) -> np.ndarray:
    """Return which texts are lengths of time, as pandas and Excel write them.

    Example:
        >>> is_duration(pa.array(["0 days 08:15:00", "3 days", "1 day, 2:03:04", "30:00:00", "08:15", "3"])).tolist()
        [True, True, True, True, False, False]
    """
    return _matches(ascii_text(text), _DURATION)


def is_truth(text: pa.Array) -> np.ndarray:
    """Return which texts are what programs write for a truth value.

    Example:
        >>> is_truth(pa.array(["true", "False", "yes"])).tolist()
        [True, True, False]
    """
    return _bools(pc.is_in(text, value_set=pa.array(_TRUTH_WORDS, text.type)))


def floats(text: pa.Array) -> np.ndarray:
    """Return the numbers that texts are, float64; NaN for no number. `inf` is infinite, and truth values are 0 and 1.

    Truth values are numbers as they are to numpy and pandas, which stores them as objects where one of them is missing.

    Example:
        >>> floats(pa.array(["7.0", "+.5", "-inf", "true", "NaN"])).tolist()
        [7.0, 0.5, -inf, 1.0, nan]
    """
    text = _numbered(ascii_text(text))
    infinite = _matches(text, _INFINITE)
    unsigned = pc.replace_substring_regex(text, pattern=r"^\+", replacement="")
    numbers = pc.if_else(pa.array(_matches(text, _NUMBER)), unsigned, pa.scalar(None, text.type)).cast(pa.float64())
    values = numbers.fill_null(np.nan).to_numpy(zero_copy_only=False)
    if infinite.any():
        negative = _matches(text, "^-")
        values = np.where(infinite, np.where(negative, -np.inf, np.inf), values)
    return values


def integers(text: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest int64 of the numbers that texts are, and a mask of those that are numbers.

    Whole numbers are exact as far as int64 goes, and its ends stand for what is beyond.

    Example:
        >>> [part.tolist() for part in integers(pa.array(["9007199254740993", "7.0", "1e3", "inf", "A"]))]
        [[9007199254740993, 7, 1000, 9223372036854774784, 0], [True, True, True, True, False]]
    """
    text = _numbered(ascii_text(text))
    is_short = _matches(text, _SHORT_WHOLE)
    nothing = pa.scalar(None, text.type)
    unsigned = pc.replace_substring_regex(text, pattern=r"^\+", replacement="")
    short = pc.if_else(pa.array(is_short), unsigned, nothing).cast(pa.int64())
    values = short.fill_null(0).to_numpy(zero_copy_only=False)
    if is_short.all():
        return values, is_short
    others, valid = rounded_to_int64(floats(text))
    values = np.where(is_short, values, others)
    exact = valid & ~is_short & (np.abs(others) >= 2**53) & _matches(text, _NUMBER)
    if exact.any():
        values[exact] = each_word(text.filter(pa.array(exact)), pa.int64(), _exact).to_numpy()
    return values, valid | is_short


def rounded_to_int64(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest int64 of each float, and a mask of those that are numbers."""
    valid = ~np.isnan(values)
    bounded = np.clip(values, -float(2**63), _LARGEST_FLOAT_IN_INT64)
    return np.rint(np.where(valid, bounded, 0.0)).astype(np.int64), valid


def _numbered(text: pa.Array) -> pa.Array:
    """Return text with 1 for `true` and 0 for `false`."""
    places = pc.index_in(text, value_set=pa.array(_TRUTH_WORDS, text.type))
    if places.null_count == len(text):
        return text
    return pc.coalesce(pa.array(["0", "1"] * len(TRUTHS), text.type).take(places), text)


def _exact(text: str) -> int:
    if len(text) > _LONGEST or "e+" in text:  # as programs write floats
        return int(rounded_to_int64(np.array([float(text)]))[0][0])
    number = Decimal(text)
    lowest, highest = _INT64
    if not lowest < number < highest:
        return lowest if number < 0 else highest
    return int(number.to_integral_value())


def _whole(numbers: pa.Array) -> np.ndarray:
    return numbers.fill_null(0).to_numpy(zero_copy_only=False)


def _matches(text: pa.Array, pattern: str) -> np.ndarray:
    return _bools(pc.match_substring_regex(text, pattern))


def _bools(mask: pa.Array) -> np.ndarray:
    return pc.fill_null(mask, False).to_numpy(zero_copy_only=False)


@lru_cache(maxsize=1)
def _digits() -> dict[int, str]:
    """Return the digits of every script, and its signs, as those of ASCII."""
    digits = {code: str(unicodedata.decimal(chr(code))) for code in range(128, 0x1FBFA) if chr(code).isdecimal()}
    return digits | {ord(sign): plain for sign, plain in _SIGNS.items()}
