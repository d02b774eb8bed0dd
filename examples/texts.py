"""Texts in a federation: which part of SciPy's manual is an entry from? Three offices each know one part best."""

import importlib
import inspect

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from fedkt import FedKTClassifier

PARTS = ["signal", "special", "stats"]


def entries(part):
    """What the manual says of a module's functions and classes, without the names that would tell."""
    module = importlib.import_module(f"scipy.{part}")
    docs = {inspect.getdoc(getattr(module, name)) or "" for name in dir(module) if name[0] not in "_"}
    for doc in sorted(docs):
        text = doc.partition("Parameters\n")[0].replace(part, "")
        if len(text.split()) > 8:
            yield text


pairs = [(text, part) for part in PARTS for text in entries(part)]
texts, parts = np.array([text for text, _ in pairs], dtype=object), np.array([part for _, part in pairs])
rng = np.random.default_rng(0)
public, test, own = np.split(rng.permutation(len(texts)), [250, 450])
# Four of five entries of a part lie in the office that works with it.
office = np.where(rng.random(len(own)) < 0.8, parts[own], rng.choice(PARTS, len(own)))

model = FedKTClassifier(random_state=0).fit(texts[own], parts[own], parties=office, public=texts[public])
print(f"together: {model.score(texts[test], parts[test]):.3f}")
alone = make_pipeline(TfidfVectorizer(sublinear_tf=True), LogisticRegression(C=20, max_iter=1000))
for name in PARTS:
    rows = own[office == name]
    print(f"{name} alone: {alone.fit(texts[rows], parts[rows]).score(texts[test], parts[test]):.3f}")
print(f"all texts in one place: {alone.fit(texts[own], parts[own]).score(texts[test], parts[test]):.3f}")
print(*model.report_.notes, sep="\n")
