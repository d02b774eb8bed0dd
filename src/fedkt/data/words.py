"""Text as numbers: how much each agreed word says about it, by tf-idf.

What a word is stands here, in code, and is the same for everybody; which words count, and how much, is fitted on public
texts and agreed on as data. A text is brought to one spelling (Unicode NFKC, case folded), so that "ü" typed as one
sign or as two, "STRASSE" and "Straße", and full-width letters are the same. Words are runs of letters and digits; an
emoji or another symbol is a word, and so is each sign of scripts that are written without spaces.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

MOST_TERMS = 2_000
"""Words of one column that may be agreed on; each becomes a number of every row."""
USUAL_TERMS = 1_000
LONGEST_TERM = 40
"""Characters of a word; longer ones are keys, links and noise."""
MOST_CHARACTERS = 100_000
"""Of a longer text only the beginning is read."""
DECIMALS = 6
"""Of an agreed weight."""

_ALONE = r"\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Signs of Thai, kana and Chinese, which are written without spaces."""
_MARKS = r"\u0300-\u036f\u064b-\u065f\u0900-\u0963\u0966-\u0dff"
"""Accents and vowels that Python does not count among letters: without them words of Hindi would fall apart."""
_WORD = re.compile(rf"[{_ALONE}]|(?:[^\W_{_ALONE}]|[{_MARKS}])+|\S")


def words_of(text: str) -> list[str]:
    """The words of a text, in order and in one spelling."""
    # Case is folded between two normalisations: what it makes of some signs has another normal form.
    plain = unicodedata.normalize("NFKC", text[:MOST_CHARACTERS]).casefold()
    found = _WORD.findall(unicodedata.normalize("NFKC", plain))
    return [each for each in found if len(each) <= LONGEST_TERM and (each[0].isalnum() or _is_symbol(each))]


def _is_symbol(sign: str) -> bool:
    """Whether a single sign stands for something by itself, as an emoji or € does and a comma does not."""
    return len(sign) == 1 and unicodedata.category(sign) in ("So", "Sc")


def fit_words(texts: Iterable[str], most: int) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """The words of public texts that count, at most `most`, and the weight of each.

    Words of a single text are left out, and those of more than half of them, as far as others are left: nothing can be
    learned from the former, and little from the latter, whose absence would be a large number where columns are scaled.
    The most common come first, and equally common ones by the alphabet.
    """
    count, frequency = 0, Counter[str]()
    for text in texts:
        count += 1
        frequency.update(set(words_of(text)))
    known = dict(frequency)
    for low, high in ((2, count / 2), (1, count / 2), (1, count)):
        known = {word: each for word, each in frequency.items() if low <= each <= high}
        if known:
            break
    common = sorted(known, key=lambda word: (-known[word], word))[:most]
    terms = tuple(sorted(common))
    return terms, tuple(round(math.log((1 + count) / (1 + known[word])) + 1, DECIMALS) for word in terms)


def encode_words(
    texts: Sequence[str], terms: Sequence[str], weights: Sequence[float], out: NDArray[np.float32]
) -> None:
    """Writes into `out`, which is all zeros, how much each term says of each text; a text's row has length 1, or 0."""
    places = {term: place for place, term in enumerate(terms)}
    for row, text in enumerate(texts):
        counts = Counter(places[word] for word in words_of(text) if word in places)
        if counts:
            found = list(counts)
            values = np.array([(1 + math.log(counts[place])) * weights[place] for place in found])
            out[row, found] = values / np.sqrt(values @ values)
