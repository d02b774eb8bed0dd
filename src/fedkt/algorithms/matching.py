"""Neural matching: one network from several, neuron by neuron. The arithmetic of PFNM.

Yurochkin, Agarwal, Ghosh, Greenewald, Hoang, Khazaeni: Bayesian Nonparametric Federated Learning of Neural Networks.
ICML 2019.

The hidden neurons of a network have no order of their own, so two networks cannot be averaged weight by weight. The
paper takes each neuron of a party for a noisy copy of a global one (an atom), no two of a party for copies of the same:

    Q ~ BP(1, γ0, N(0, σ0² I))    a Beta process: endlessly many atoms θ_i, each with a probability to be used
    T_j | Q ~ BeP(Q)              a Bernoulli process: the atoms that party j of J uses
    v_jl | T_j ~ N(T_jl, σ² I)    the party's neurons, in unknown order

and looks for the atoms and the assignments that are jointly most probable (the MAP estimate), one party at a time.

A neuron is the vector v of its bias, its outgoing weights and, in the lowest hidden layer, its incoming weights. A
network of several hidden layers is matched from the top down (the paper's section on multilayer networks): the outputs
have an order that all parties share, so the neurons below them can be compared, and once a layer is matched, the
outgoing weights of the layer below it are written in the order of its atoms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedkt.errors import ConfigurationError
from fedkt.pooling import shares_of

Weights = NDArray[Any]
Floats = NDArray[np.float64]
Places = NDArray[np.int64]
"""The atom of each neuron of a party."""
NOWHERE: Places = np.empty(0, dtype=np.int64)
"""Of a party that takes no part yet."""


@dataclass(frozen=True)
class Prior:
    """The hyperparameters, with the defaults of the published experiments.

    The posterior mean shrinks towards 0: an atom that m parties share is their mean times m / (m + σ² / σ0²).

    The authors' program passes variances by these names (its sigma of 0.1 is σ = √0.1 here), expects biases around 0.1
    instead of 0, counts the log odds of an atom in use half, and at most ten of its parties, and lets no layer grow
    beyond 700. Here they count in full, as the model has it.
    """

    sigma0: float = 1.0
    """σ0: how far atoms lie from 0. Where it is far above σ, a new atom costs little but the odds of the process."""
    sigma: float = 1.0
    """σ: how far a party's neuron lies from its atom."""
    gamma: float = 1.0
    """γ0: mass of the Beta process, the number of atoms that a party is expected to use."""
    iterations: int = 5
    """Sweeps over the parties, after the one that places each party for the first time."""

    def check(self) -> None:
        """Refuse what cannot work."""
        for what, value in (("sigma0", self.sigma0), ("sigma", self.sigma), ("gamma", self.gamma)):
            if not 0 < value < np.inf:
                raise ConfigurationError(f"{what} must be a number above 0, got {value!r}.")
        if self.iterations < 0:
            raise ConfigurationError(f"iterations must be at least 0, got {self.iterations!r}.")


def match(
    networks: Sequence[Sequence[Weights]],
    class_counts: ArrayLike | None = None,
    *,
    prior: Prior = Prior(),
    rng: np.random.Generator,
) -> list[Weights]:
    """One network from several multilayer perceptrons, whose hidden layers may be wider than theirs.

    A network is the list W1 (h1, d), b1 (h1,), W2 (h2, h1), b2, …, WL (K, h), bL (K,) with ReLU in between. All have
    the same number of layers, inputs and outputs; hidden widths may differ.

    `class_counts` are the rows per class (parties × K) that the networks were trained on. What party j says of class
    k, its outgoing weights and its bias, then has the precision n_jk / Σ_i n_ik / σ² instead of 1 / σ², as in the
    published experiments: a party without rows of a class has no say in it (all have an equal one where nobody has
    rows). The bias of the outputs needs no matching: it is an atom that all parties share.

    A weight to a neuron that a party does not have counts as observed, and as 0, as in the published experiments.
    `rng` decides the order of the parties in each sweep.
    """
    layers = check_networks(networks)
    prior.check()
    n_outputs = len(layers[0][-1])
    shares = np.ones((len(layers), n_outputs)) if class_counts is None else class_shares(class_counts, layers)

    say = list(shares / prior.sigma**2)
    shared = [np.zeros(1, dtype=np.int64)] * len(layers)
    output_bias, _, _ = atoms_of([layer[-1][None] for layer in layers], say, shared, prior)
    result: list[Floats] = [output_bias[0]]
    outgoing = [layer[-2] for layer in layers]
    for bias in range(len(layers[0]) - 3, 0, -2):
        lowest = bias == 1
        incoming = [layer[0] if lowest else np.empty((len(layer[bias]), 0)) for layer in layers]
        neurons = [
            np.hstack([into, layer[bias][:, None], out.T])
            for into, layer, out in zip(incoming, layers, outgoing, strict=True)
        ]
        n_in = incoming[0].shape[1]
        precisions = [np.concatenate([np.full(n_in + 1, 1 / prior.sigma**2), each]) for each in say]
        places, atoms = match_layer(neurons, precisions, prior=prior, rng=rng)
        result = [atoms[:, n_in], atoms[:, n_in + 1 :].T, *result]
        if lowest:
            result = [atoms[:, :n_in], *result]
        else:
            outgoing = [in_order(layer[bias - 1], own, len(atoms)) for layer, own in zip(layers, places, strict=True)]
            say = [np.full(len(atoms), 1 / prior.sigma**2)] * len(layers)
    kind = np.result_type(*(np.asarray(part).dtype for network in networks for part in network), np.float32)
    return [np.ascontiguousarray(part, dtype=kind) for part in result]


def match_layer(
    neurons: Sequence[Floats],
    precisions: Sequence[Floats],
    *,
    prior: Prior,
    rng: np.random.Generator,
) -> tuple[list[Places], Floats]:
    """The atom of each party's neurons, and the atoms (Algorithm 1).

    `neurons[j]` has a row for each neuron of party j, `precisions[j]` is 1 / σ_j² of each of its columns. The parties
    are placed one after the other, the widest first; then each sweep takes every party out once, in random order, and
    assigns its neurons anew. A step is exact: nothing is more probable for a party, given where the others are.
    """
    n_parties = len(neurons)
    first = sorted(range(n_parties), key=lambda party: -len(neurons[party]))
    sweeps = [rng.permutation(n_parties).tolist() for _ in range(prior.iterations)]
    places = [NOWHERE] * n_parties
    for party in [*first, *(each for sweep in sweeps for each in sweep)]:
        places[party] = NOWHERE
        places = without_gaps(places)
        atoms, precision, counts = atoms_of(neurons, precisions, places, prior)
        cost = assignment_cost(neurons[party], precisions[party], atoms, precision, counts, n_parties, prior=prior)
        places[party] = cheapest(cost, len(atoms))
    places = without_gaps(places)
    return places, atoms_of(neurons, precisions, places, prior)[0]


def atoms_of(
    neurons: Sequence[Floats], precisions: Sequence[Floats], places: Sequence[Places], prior: Prior
) -> tuple[Floats, Floats, Places]:
    """The most probable atoms given who is assigned to them, their precisions and how many parties use each.

    Proposition 1, with μ0 = 0 and a precision for each coordinate; the sums run over the neurons v_jl of atom i:

        θ_i = Σ v_jl / σ_j²  /  (1 / σ0² + Σ 1 / σ_j²)
    """
    width = 1 + max((int(own.max()) for own in places if len(own)), default=-1)
    total = np.zeros((width, neurons[0].shape[1]))
    precision = np.full_like(total, 1 / prior.sigma0**2)
    counts = np.zeros(width, dtype=np.int64)
    for vectors, sharpness, own in zip(neurons, precisions, places, strict=True):
        if len(own):
            # A party has no atom twice, so plain indexing adds up.
            total[own] += vectors * sharpness
            precision[own] += sharpness
            counts[own] += 1
    return total / precision, precision, counts


def assignment_cost(
    neurons: Floats,
    own_precision: Floats,
    atoms: Floats,
    precision: Floats,
    counts: Places,
    n_parties: int,
    *,
    prior: Prior,
) -> Floats:
    """What each neuron of a party (row) costs at each atom of the others, and at each new atom (columns).

    Proposition 2. With the sums over the other parties' neurons of atom i, and m_i of these parties using it,

        −C_il = ‖v_l / σ_j² + Σ v / σ²‖² / (1/σ0² + 1/σ_j² + Σ 1/σ²) − ‖Σ v / σ²‖² / (1/σ0² + Σ 1/σ²)
                + 2 log(m_i / (J − m_i))                                              for an atom i in use,
        −C_il = ‖v_l / σ_j²‖² / (1/σ0² + 1/σ_j²) + 2 log(γ0 / J) − 2 log k            for the k-th new atom,

    where the logarithms are the odds of the atom at the Bernoulli process and the terms of Poisson(γ0 / J), the number
    of atoms that no other party uses. Written with the atom's mean θ and precision p, and s = 1 / σ_j², the difference
    of squared norms is s v² − s p / (s + p) (v − θ)² in every coordinate. The first part is the same for all atoms, so
    only the second one is kept, a distance.
    """
    blend = own_precision * precision / (own_precision + precision)
    distance = (neurons**2) @ blend.T - 2 * neurons @ (blend * atoms).T + (blend * atoms**2).sum(axis=1)
    in_use = distance - 2 * np.log(counts / (n_parties - counts))

    blend = own_precision / (own_precision * prior.sigma0**2 + 1)
    poisson = np.log(prior.gamma / n_parties) - np.log(np.arange(1, len(neurons) + 1))
    new = (neurons**2 @ blend)[:, None] - 2 * poisson
    return np.hstack([in_use, new])


def cheapest(cost: Floats, n_atoms: int) -> Places:
    """The column of each row at the least total cost (the Hungarian algorithm), new atoms in the order of the rows."""
    from scipy.optimize import linear_sum_assignment

    _, columns = linear_sum_assignment(cost)
    places: Places = columns.astype(np.int64)
    new = places >= n_atoms
    places[new] = n_atoms + np.arange(new.sum())
    return places


def without_gaps(places: Sequence[Places]) -> list[Places]:
    """The same assignments with the atoms in use numbered 0, 1, 2, …"""
    _, numbers = np.unique(np.concatenate(places), return_inverse=True)
    return np.split(numbers.astype(np.int64), np.cumsum([len(own) for own in places])[:-1])


def in_order(rows: Floats, places: Places, width: int) -> Floats:
    """A party's rows in the order of the atoms, 0 where it has none."""
    ordered = np.zeros((width, rows.shape[1]))
    ordered[places] = rows
    return ordered


def class_shares(class_counts: ArrayLike, layers: Sequence[Sequence[Floats]]) -> Floats:
    """The part of each class's rows that each party holds; equal parts where nobody holds any."""
    counts = np.asarray(class_counts, dtype=np.float64)
    shape = (len(layers), len(layers[0][-1]))
    if counts.shape != shape or not np.isfinite(counts).all() or (counts < 0).any():
        raise ConfigurationError(
            f"class_counts must be the rows per class of each party, of shape {shape} (parties, classes) and not "
            f"negative, got shape {counts.shape}."
        )
    return shares_of(counts)


def check_networks(networks: Sequence[Sequence[Weights]]) -> list[list[Floats]]:
    """The networks in double precision, if they can be matched."""
    if not networks:
        raise ConfigurationError("There is no network to match.")
    layers = [[np.asarray(part, dtype=np.float64) for part in network] for network in networks]
    for number, network in enumerate(layers):
        shapes = [part.shape for part in network]
        weights, biases = network[::2], network[1::2]
        if (
            len(network) < 4
            or len(network) % 2
            or any(part.ndim != 2 or 0 in part.shape for part in weights)
            or any(bias.shape != (len(part),) for part, bias in zip(weights, biases, strict=True))
            or any(above.shape[1] != len(below) for below, above in pairwise(weights))
        ):
            raise ConfigurationError(
                f"Network {number} has the shapes {shapes}. Matching needs a multilayer perceptron with hidden layers: "
                "weights (out, in) and biases (out,) by turns, each layer reading the one before."
            )
        first = layers[0]
        if (len(network), weights[0].shape[1], len(biases[-1])) != (len(first), first[0].shape[1], len(first[-1])):
            raise ConfigurationError(
                f"Network {number} has the shapes {shapes}, network 0 {[part.shape for part in first]}. All need the "
                "same number of layers, inputs and outputs."
            )
        if not all(np.isfinite(part).all() for part in network):
            raise ConfigurationError(
                f"Network {number} has weights that are not finite. Train it again, or leave it out."
            )
    return layers
