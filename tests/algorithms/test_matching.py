"""Neural matching: answers known beforehand, and every assignment of small cases tried out.

Most tests use FLAT. σ0 is so wide that the posterior mean is the plain mean (it shrinks by σ² / σ0² = 1e-8). But under
a wide prior an atom of one's own costs nothing except −2 log(γ0 / J), so γ0 is small: about 16 then, more than the
distance between noisy copies of a neuron (1 or 2 with σ = 0.1) and less than between unlike ones (hundreds).
"""

from itertools import pairwise, product

import numpy as np
import pytest
from scipy import stats

from fedkt.algorithms.matching import Prior, assignment_cost, atoms_of, cheapest, match, match_layer
from fedkt.errors import ConfigurationError

FLAT = Prior(sigma0=1e3, sigma=0.1, gamma=1e-3)
ONE_LAYER, TWO_LAYERS, THREE_LAYERS = (5, 8, 4), (5, 8, 7, 4), (5, 6, 8, 7, 4)
DEPTHS = pytest.mark.parametrize("widths", [ONE_LAYER, TWO_LAYERS, THREE_LAYERS], ids=["one", "two", "three"])


def network(widths, seed=0):
    rng = np.random.default_rng(seed)
    return [
        part for n_in, n_out in pairwise(widths) for part in (rng.normal(size=(n_out, n_in)), rng.normal(size=n_out))
    ]


def outputs(weights, rows):
    for number in range(0, len(weights), 2):
        rows = rows @ weights[number].T + weights[number + 1]
        if number < len(weights) - 2:
            rows = np.maximum(rows, 0)
    return rows


def rows_for(widths):
    return np.random.default_rng(99).normal(size=(50, widths[0]))


def hidden_widths(weights):
    return [len(bias) for bias in weights[1:-1:2]]


def reordered(weights, orders):
    """The same function with the neurons of hidden layer i in the order orders[i]."""
    made = [part.copy() for part in weights]
    for layer, order in enumerate(orders):
        made[2 * layer] = made[2 * layer][order]
        made[2 * layer + 1] = made[2 * layer + 1][order]
        made[2 * layer + 2] = made[2 * layer + 2][:, order]
    return made


def random_orders(weights, seed):
    rng = np.random.default_rng(seed)
    return [rng.permutation(width) for width in hidden_widths(weights)]


def merged(parties, prior=FLAT, seed=0, **options):
    return match(parties, prior=prior, rng=np.random.default_rng(seed), **options)


def assert_same_network(got, expected):
    """Equal weights after the hidden neurons of `got` were brought into the order of `expected`, from the top down."""
    assert [part.shape for part in got] == [part.shape for part in expected]
    n_hidden = len(expected) // 2 - 1
    orders = []
    for layer in reversed(range(n_hidden)):
        out = got[2 * layer + 2] if not orders else got[2 * layer + 2][orders[0]]
        far = np.linalg.norm(out.T[None] - expected[2 * layer + 2].T[:, None], axis=2)
        orders.insert(0, far.argmin(axis=1))
    for mine, theirs in zip(reordered(got, orders), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-7)


@DEPTHS
def test_a_network_alone_stays_as_it_is(widths):
    alone = network(widths)
    for got, expected in zip(merged([alone]), alone, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-7)


@DEPTHS
@pytest.mark.parametrize("copies", [1, 3])
def test_every_weight_shrinks_as_its_prior_says(widths, copies):
    """By m / (m + σ² / σ0²), the posterior mean of m equal observations."""
    alone = network(widths)
    shrunk = copies / (copies + 0.5**2 / 2.0**2)
    assert_same_network(
        merged([alone] * copies, prior=Prior(sigma0=2.0, sigma=0.5, gamma=1e-3)), [shrunk * part for part in alone]
    )


@DEPTHS
def test_networks_that_differ_in_the_order_of_neurons_become_that_network(widths):
    original = network(widths)
    parties = [reordered(original, random_orders(original, seed)) for seed in range(4)]
    got = merged(parties)
    assert hidden_widths(got) == list(widths[1:-1])
    rows = rows_for(widths)
    np.testing.assert_allclose(outputs(got, rows), outputs(original, rows), rtol=1e-6, atol=1e-6)
    # Plain averaging of the same networks is far off, so it is the matching that does it.
    plain = [np.mean(parts, axis=0) for parts in zip(*parties, strict=True)]
    assert np.abs(outputs(plain, rows) - outputs(original, rows)).max() > 1


@DEPTHS
def test_noisy_copies_in_any_order_become_their_mean(widths):
    original, noise = network(widths), np.random.default_rng(5)
    noisy = [[part + noise.normal(scale=0.03, size=part.shape) for part in original] for _ in range(5)]
    parties = [reordered(each, random_orders(each, seed)) for seed, each in enumerate(noisy)]
    got = merged(parties)
    assert_same_network(got, [np.mean(parts, axis=0) for parts in zip(*noisy, strict=True)])
    rows = rows_for(widths)
    size = np.abs(outputs(original, rows)).mean()
    assert np.abs(outputs(got, rows) - outputs(original, rows)).mean() < 0.05 * size


def test_matching_a_layer_finds_the_order_of_noisy_copies():
    rng = np.random.default_rng(2)
    neurons = rng.normal(size=(9, 6))
    orders = [rng.permutation(9) for _ in range(4)]
    copies = [neurons[order] + rng.normal(scale=0.05, size=neurons.shape) for order in orders]
    places, atoms = match_layer(copies, [np.full(6, 100.0)] * 4, prior=FLAT, rng=rng)
    assert len(atoms) == 9
    for order, own in zip(orders, places, strict=True):
        assert (own[np.argsort(order)] == places[0][np.argsort(orders[0])]).all()


@DEPTHS
def test_the_order_of_the_parties_does_not_change_the_function_of_like_networks(widths):
    original = network(widths)
    parties = [reordered(original, random_orders(original, seed)) for seed in range(3)]
    rows = rows_for(widths)
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        got = outputs(merged([parties[number] for number in order]), rows)
        np.testing.assert_allclose(got, outputs(original, rows), rtol=1e-6, atol=1e-6)


@DEPTHS
def test_networks_without_a_neuron_in_common_stand_side_by_side(widths):
    one, other = network(widths, 1), network(widths, 2)
    got = merged([one, other])
    assert hidden_widths(got) == [2 * width for width in widths[1:-1]]
    rows = rows_for(widths)
    # Every neuron is its own atom with its own weights, so the outputs add up; only the bias of the outputs is shared.
    together = outputs(one, rows) + outputs(other, rows) - (one[-1] + other[-1]) / 2
    np.testing.assert_allclose(outputs(got, rows), together, rtol=1e-6, atol=1e-6)


def test_a_neuron_that_only_the_wider_network_has_is_kept():
    wide = network(ONE_LAYER)
    narrow = [wide[0][:-2], wide[1][:-2], wide[2][:, :-2], wide[3]]
    rows = rows_for(ONE_LAYER)
    for parties in ([wide, narrow], [narrow, wide]):
        got = merged(parties)
        assert hidden_widths(got) == hidden_widths(wide)
        np.testing.assert_allclose(outputs(got, rows), outputs(wide, rows), rtol=1e-6, atol=1e-6)


def test_a_weight_to_a_neuron_that_a_party_lacks_counts_as_zero():
    wide = network(TWO_LAYERS)
    narrow = [*wide[:2], wide[2][:-1], wide[3][:-1], wide[4][:, :-1], wide[5]]
    expected = [part.copy() for part in wide]
    expected[2][-1] /= 2
    # With σ = 1 the neurons below stay matched although one of their weights is w at one party and 0 at the other.
    assert_same_network(merged([narrow, wide], prior=Prior(sigma0=1e4, sigma=1.0, gamma=1e-3)), expected)


def test_three_widths_give_the_union_of_the_neurons():
    union = network((5, 9, 4))
    parts = [np.arange(0, 5), np.arange(3, 9), np.arange(1, 4)]
    got = merged([[union[0][own], union[1][own], union[2][:, own], union[3]] for own in parts])
    assert_same_network(got, union)


def test_the_published_prior_shrinks_a_shared_neuron_by_the_number_of_parties():
    # σ = σ0 = 1: two like parties and the prior's 0 have equal weight, so everything becomes 2/3 of itself.
    alike = network((3, 2, 2))
    got = merged([alike, alike], prior=Prior())
    assert_same_network(got, [part * 2 / 3 for part in alike])


def test_class_counts_weigh_what_a_party_says_of_a_class():
    # Like neurons, other outputs. Class 0: only the first party has rows; class 1: 3 to 1; class 2: nobody has any.
    counts = np.array([[10, 30, 0], [0, 10, 0]])
    one = network((4, 3, 3))
    other = [one[0], one[1], one[2] + 0.1, one[3] + 5]
    got = merged([one, other], class_counts=counts)
    weight = np.array([1, 0.75, 0.5])
    expected = [one[0], one[1], weight[:, None] * one[2] + (1 - weight)[:, None] * other[2], weight * one[3]]
    expected[3] = expected[3] + (1 - weight) * other[3]
    assert_same_network(got, expected)


def test_a_party_without_rows_of_a_class_is_not_matched_by_that_class():
    # The neurons differ in their weight to class 1 only, where the second party has no rows: still one atom, and the
    # first party's weight. Without the counts they are two.
    one = [np.ones((1, 2)), np.zeros(1), np.array([[1.0], [5.0]]), np.zeros(2)]
    other = [np.ones((1, 2)), np.zeros(1), np.array([[1.0], [-5.0]]), np.zeros(2)]
    got = merged([one, other], class_counts=[[4, 8], [4, 0]])
    np.testing.assert_allclose(got[2], [[1.0], [5.0]], rtol=1e-6)
    assert hidden_widths(merged([one, other])) == [2]


def test_the_same_generator_gives_the_same_network():
    # Loosely alike networks under the published prior, where the order of the sweeps may well matter.
    parties = [network(TWO_LAYERS, seed) for seed in range(4)]
    first, again = (merged(parties, prior=Prior(sigma=0.5), seed=3) for _ in range(2))
    assert all((one == other).all() for one, other in zip(first, again, strict=True))


def test_sweeps_mend_what_the_first_placing_got_wrong():
    # One neuron each: 0.1, 2 and 1, placed in this order with σ = 1, σ0 = 10, γ0 = 1, J = 3.
    # 2 beside 0.1: ½ · 1.9² − 2 log(1/2) = 3.2 is more than a new atom, 2²/101 − 2 log(1/3) = 2.2. Then 1 joins 0.1.
    # In a sweep 2 meets two at 0.55: 2/3 · 1.45² − 2 log(2/1) = 0.02, and joins.
    neurons = [np.array([[value]]) for value in (0.1, 2.0, 1.0)]

    def width(iterations):
        prior = Prior(sigma0=10.0, sigma=1.0, gamma=1.0, iterations=iterations)
        return len(match_layer(neurons, [np.ones(1)] * 3, prior=prior, rng=np.random.default_rng(0))[1])

    assert width(0) == 2
    assert width(1) == 1


def test_the_widest_party_is_placed_first():
    wide = np.diag([4.0, 5.0, 6.0])
    prior = Prior(sigma0=1e3, sigma=0.1, gamma=1e-3, iterations=0)
    places, _ = match_layer([wide[[2, 0]], wide], [np.full(3, 100.0)] * 2, prior=prior, rng=np.random.default_rng(0))
    assert [own.tolist() for own in places] == [[2, 0], [0, 1, 2]]


def test_single_precision_stays_single():
    parties = [[part.astype(np.float32) for part in network(TWO_LAYERS, seed)] for seed in range(2)]
    assert {part.dtype for part in merged(parties)} == {np.dtype(np.float32)}


def log_posterior(mine, own_sigma, others, other_sigmas, chosen, *, n_parties, prior):
    """Of one party's assignment, up to a constant, straight from the model: Gaussians, Bernoulli draws, a Poisson.

    `others[i]` are the other parties' neurons at atom i, `chosen[l]` the atom of neuron l or None for one of its own.
    Atoms are at their best place; those that nobody uses are at 0, the prior's mode.
    """
    groups = [[(vector, other_sigmas) for vector in group] for group in others]
    groups += [[] for _ in mine]
    new = len(others)
    for vector, atom in zip(mine, chosen, strict=True):
        groups[new if atom is None else atom].append((vector, own_sigma))
        new += atom is None
    total = 0.0
    for group in groups:
        seen = np.array([vector for vector, _ in group] + [np.zeros(mine.shape[1])])
        sigmas = np.array([sigma for _, sigma in group] + [np.full(mine.shape[1], prior.sigma0)])
        place = np.average(seen, axis=0, weights=sigmas**-2)
        # The prior is one more Gaussian, around 0 instead of around a neuron.
        total += stats.norm.logpdf(place, seen, sigmas).sum()
    for atom, group in enumerate(others):
        total += stats.bernoulli.logpmf(atom in chosen, len(group) / n_parties)
    return total + stats.poisson.logpmf(new - len(others), prior.gamma / n_parties)


def assignments(n_neurons, n_atoms):
    """Each neuron at an atom of the others or at one of its own; no atom twice."""
    for chosen in product([None, *range(n_atoms)], repeat=n_neurons):
        used = [atom for atom in chosen if atom is not None]
        if len(used) == len(set(used)):
            yield chosen


CASES = [
    (n_neurons, n_atoms, prior, seed)
    for n_neurons, n_atoms in [(1, 2), (2, 2), (3, 2), (2, 3), (3, 3)]
    for prior in [Prior(), Prior(sigma0=3.0, sigma=0.7, gamma=5.0), Prior(sigma0=0.8, sigma=1.5, gamma=0.1)]
    for seed in range(4)
]


def small_case(n_neurons, n_atoms, prior, seed):
    """A party's neurons, and 1 to 3 neurons of three other parties at each atom; σ differs between coordinates."""
    rng = np.random.default_rng(seed)
    own_sigma, other_sigmas = prior.sigma * rng.uniform(0.5, 2, size=(2, 3))
    others = [rng.normal(scale=1.5, size=(rng.integers(1, 4), 3)) for _ in range(n_atoms)]
    mine = rng.normal(scale=1.5, size=(n_neurons, 3))
    parties = [np.array([group[turn] for group in others if len(group) > turn]).reshape(-1, 3) for turn in range(3)]
    places = [np.array([i for i, group in enumerate(others) if len(group) > turn], dtype=int) for turn in range(3)]
    atoms, precision, counts = atoms_of(parties, [other_sigmas**-2.0] * 3, places, prior)
    cost = assignment_cost(mine, own_sigma**-2.0, atoms, precision, counts, 4, prior=prior)

    def truth(chosen):
        return log_posterior(mine, own_sigma, others, other_sigmas, chosen, n_parties=4, prior=prior)

    return cost, truth


@pytest.mark.parametrize(("n_neurons", "n_atoms", "prior", "seed"), CASES)
def test_no_assignment_is_more_probable_than_that_of_a_hungarian_step(n_neurons, n_atoms, prior, seed):
    cost, truth = small_case(n_neurons, n_atoms, prior, seed)
    got = tuple(None if atom >= n_atoms else int(atom) for atom in cheapest(cost, n_atoms))
    assert truth(got) >= max(map(truth, assignments(n_neurons, n_atoms))) - 1e-9


@pytest.mark.parametrize(("n_neurons", "n_atoms", "prior", "seed"), CASES)
def test_the_cost_of_an_assignment_is_minus_twice_its_log_posterior_up_to_a_constant(n_neurons, n_atoms, prior, seed):
    cost, truth = small_case(n_neurons, n_atoms, prior, seed)

    def price(chosen):
        new = iter(range(n_atoms, n_atoms + n_neurons))
        return sum(cost[row, next(new) if atom is None else atom] for row, atom in enumerate(chosen))

    constants = [price(chosen) + 2 * truth(chosen) for chosen in assignments(n_neurons, n_atoms)]
    np.testing.assert_allclose(constants, constants[0], rtol=0, atol=1e-9)


GOOD = network(ONE_LAYER)


@pytest.mark.parametrize(
    ("parties", "message"),
    [
        ([], "no network"),
        ([network((5, 4))], "hidden layer"),
        ([GOOD[:-1]], "by turns"),
        ([[GOOD[0].T, *GOOD[1:]]], "by turns"),
        ([[GOOD[0], GOOD[1][:-1], *GOOD[2:]]], "by turns"),
        ([GOOD, network(TWO_LAYERS)], "same number of layers"),
        ([GOOD, network((6, 8, 4))], "same number of layers"),
        ([GOOD, network((5, 8, 3))], "same number of layers"),
        ([[GOOD[0] * np.nan, *GOOD[1:]]], "not finite"),
    ],
)
def test_networks_that_cannot_be_matched_are_refused(parties, message):
    with pytest.raises(ConfigurationError, match=message):
        merged(parties)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prior": Prior(sigma=0.0)}, "sigma must"),
        ({"prior": Prior(sigma0=-1.0)}, "sigma0 must"),
        ({"prior": Prior(gamma=float("nan"))}, "gamma must"),
        ({"prior": Prior(iterations=-1)}, "iterations must"),
        ({"class_counts": [[1, 2, 3]]}, "class_counts"),
        ({"class_counts": [[1, 2, 3, -1]]}, "class_counts"),
    ],
)
def test_options_that_cannot_work_are_refused(options, message):
    with pytest.raises(ConfigurationError, match=message):
        merged([GOOD], **options)
