"""Training a stack is training each network alone: same initial weights and batches, same weights at the end."""

from __future__ import annotations

import copy
import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from fedkt.errors import ModelError  # noqa: E402
from fedkt.models.neural import recipe as neural_recipe  # noqa: E402
from fedkt.models.neural import stack  # noqa: E402
from fedkt.models.neural.dense import layers_of  # noqa: E402
from fedkt.models.neural.networks import build_network, cnn, mlp  # noqa: E402
from fedkt.models.neural.recipe import Correction, Recipe, batches  # noqa: E402
from fedkt.models.neural.training import Training, train  # noqa: E402

ADAM = Recipe(epochs=3, batch_size=8, learning_rate=1e-2, weight_decay=1e-3, optimiser="adam", momentum=0.0)
RECIPES = {
    "adam": ADAM,
    "adamw": Recipe(3, 8, 1e-2, 1e-2, "adamw", 0.0),
    "sgd": Recipe(3, 8, 1e-1, 1e-3, "sgd", 0.0),
    "sgd with momentum": Recipe(3, 8, 1e-1, 1e-3, "sgd", 0.9),
}
SIZES = (50, 3, 17, 16, 8, 40, 1)
"""Full last batches, short ones, single rows; every network but one finishes before the longest."""


def small(shape: tuple[int, ...], n_outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(shape[0], 7), nn.Tanh(), nn.Linear(7, n_outputs))


def trainings(sizes=SIZES, dtype=torch.float64, *, soft=False, correction=None, shared=False) -> list[Training]:
    rng = np.random.default_rng(0)
    everybody = torch.as_tensor(rng.normal(size=(60, 5)), dtype=dtype)
    tasks = []
    for place, size in enumerate(sizes):
        own = rng.permutation(60)[:size]
        targets = torch.as_tensor(rng.integers(0, 3, size))
        if soft:
            targets = torch.as_tensor(rng.dirichlet(np.ones(3), size), dtype=dtype)
        tasks.append(
            Training(
                build_network(small, (5,), 3, place).to(dtype),
                everybody if shared else everybody[own].clone(),
                targets,
                np.random.default_rng(100 + place),
                own if shared else None,
                correction(place) if correction else None,
            )
        )
    return tasks


def weights_of(training: Training) -> list[np.ndarray]:
    return [each.detach().numpy() for each in training.module.parameters()]


def furthest(one: list[Training], other: list[Training]) -> float:
    return max(
        float(np.abs(a - b).max())
        for left, right in zip(one, other, strict=True)
        for a, b in zip(weights_of(left), weights_of(right), strict=True)
    )


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
@pytest.mark.parametrize("shared", [False, True], ids=["own rows", "shared rows"])
def test_a_stack_ends_where_single_trainings_end_in_float64(recipe, shared):
    alone, together = trainings(shared=shared), trainings(shared=shared)
    for each in alone:
        train(each, recipe)
    stack.train_stack(together, recipe)
    assert furthest(alone, together) < 1e-9
    assert furthest(together, trainings(shared=shared)) > 1e-2, "training must have moved the weights"


def test_networks_whose_epochs_follow_from_their_steps_end_where_single_trainings_end(monkeypatch):
    """The most steps then belong to neither the most rows nor the fewest: 50 rows take 7 · 3, 17 rows 3 · 7."""
    monkeypatch.setattr(neural_recipe, "LEAST_EPOCHS", 2)
    monkeypatch.setattr(neural_recipe, "LEAST_STEPS", 20)
    auto = Recipe(None, 8, 1e-1, 1e-3, "sgd", 0.0)
    assert [auto.steps(size) for size in SIZES] == [21, 20, 21, 20, 20, 20, 20]
    alone, together = trainings((*SIZES, 60)), trainings((*SIZES, 60))
    for each in alone:
        train(each, auto)
    stack.train_stack(together, auto)
    assert furthest(alone, together) < 1e-9


def test_in_float32_a_stack_stays_within_round_off_of_float64():
    exact, together = trainings(dtype=torch.float64), trainings(dtype=torch.float32)
    for each in exact:
        train(each, ADAM)
    stack.train_stack(together, ADAM)
    assert furthest(exact, together) < 2e-5


def test_soft_labels_train_the_same_in_a_stack():
    alone, together = trainings(soft=True), trainings(soft=True)
    for each in alone:
        train(each, ADAM)
    stack.train_stack(together, ADAM)
    assert furthest(alone, together) < 1e-9


def correction_of(place: int) -> Correction:
    rng = np.random.default_rng(place)
    shapes = [(7, 5), (7,), (3, 7), (3,)]
    return Correction(
        0.1 * place,
        tuple(rng.normal(size=shape) for shape in shapes),
        tuple(rng.normal(size=shape) for shape in shapes),
    )


def test_gradient_corrections_are_each_networks_own_in_a_stack():
    alone, together = trainings(correction=correction_of), trainings(correction=correction_of)
    for each in alone:
        train(each, ADAM)
    stack.train_stack(together, ADAM)
    assert furthest(alone, together) < 1e-9
    plain = trainings()
    stack.train_stack(plain, ADAM)
    assert furthest(together, plain) > 1e-2


def test_a_correction_that_does_not_fit_the_weights_is_refused():
    wrong = Correction(push=(np.zeros((2, 2)),))
    with pytest.raises(ModelError, match="does not fit"):
        train(trainings((5,), correction=lambda _: wrong)[0], ADAM)


def test_a_single_training_is_what_torchs_own_optimiser_does():
    """The oracle: a loop as any textbook has it, with the unfused Adam and without weights, masks or stacks."""
    ours = trainings((21,))[0]
    twin = copy.deepcopy(ours.module)
    train(ours, ADAM)
    rng = np.random.default_rng(100)
    rng.integers(2**63 - 1)
    optimiser = torch.optim.Adam(twin.parameters(), lr=1e-2, weight_decay=1e-3, foreach=False)
    for _ in range(3):
        order = rng.permutation(21)
        for start in (0, 8, 16):
            rows = torch.as_tensor(order[start : start + 8])
            optimiser.zero_grad()
            nn.CrossEntropyLoss()(twin(ours.rows[rows]), ours.targets[rows]).backward()
            optimiser.step()
    for mine, textbook in zip(ours.module.parameters(), twin.parameters(), strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), textbook.detach().numpy(), atol=1e-10)


def test_a_finished_network_stands_still():
    short, long = trainings((8, 48))
    stack.train_stack([short, long], ADAM)
    alone = trainings((8, 48))[0]
    train(alone, ADAM)
    assert furthest([short], [alone]) < 1e-12


def test_batches_visit_every_row_once_an_epoch_and_differ_between_epochs():
    epochs = batches(21, 8, np.random.default_rng(0))
    first, second = next(epochs), next(epochs)
    assert first.shape == (3, 8)
    for epoch in (first, second):
        assert sorted(epoch[epoch >= 0]) == list(range(21))
        assert (epoch[-1] == -1).sum() == 3
    assert (first != second).any()


def test_the_paper_networks_are_told_apart_by_what_a_stack_is_good_for():
    assert against(mlp, (64,)) is None
    assert "Conv2d is not faster" in str(against(cnn, (3, 32, 32)))


def against(factory, shape=(5,)) -> str | None:
    return stack.reason_against_stack(build_network(factory, shape, 3, 0), build_network(factory, shape, 3, 1), shape)


class Functional(nn.Module):
    """Dropout that no list of layers shows."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(5, 3)

    def forward(self, rows):
        return self.last(nn.functional.dropout(rows, 0.5, self.training))


class Across(Functional):
    """A layer that looks at the whole batch."""

    def forward(self, rows):
        return self.last(rows - rows.mean(0))


def frozen(shape, n_outputs):
    module = small(shape, n_outputs)
    next(module.parameters()).requires_grad_(False)
    return module


def tied(shape, n_outputs):
    module = nn.Sequential(nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 5), nn.Linear(5, n_outputs))
    module[2].weight = module[0].weight
    return module


@pytest.mark.parametrize(
    ("factory", "word"),
    [
        (lambda shape, n: nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, n)), "BatchNorm1d"),
        (lambda shape, n: nn.Sequential(nn.Linear(5, 4), nn.Dropout(0.5), nn.Linear(4, n)), "Dropout"),
        (lambda shape, n: Functional(), "cannot be stacked"),
        (lambda shape, n: Across(), "other rows of a batch"),
        (lambda shape, n: type("Own", (Functional,), {})(), "cannot be stacked"),
        (frozen, "frozen"),
        (tied, "in two places"),
    ],
    ids=[
        "batch normalisation",
        "dropout",
        "dropout inside forward",
        "a look across the batch",
        "a class of its own for every network",
        "frozen weights",
        "tied weights",
    ],
)
def test_what_would_mean_something_else_in_a_stack_is_trained_one_by_one(factory, word):
    assert word in str(against(factory))


def repeated(shape, n_outputs):
    act = nn.Tanh()
    return nn.Sequential(nn.Linear(shape[0], 6), act, nn.Linear(6, 6), act, nn.Linear(6, n_outputs))


def hooked(shape, n_outputs):
    module = nn.Sequential(nn.Linear(shape[0], 6), nn.ReLU(), nn.Linear(6, n_outputs))
    module[0].register_forward_hook(lambda part, inputs, output: output * 2)
    return module


def sequence(*layers):
    return lambda shape, n_outputs: nn.Sequential(*(part() for part in layers), nn.Linear(6, n_outputs))


KINDS = {
    "a layer used twice": repeated,
    "a hook": hooked,
    "relu": sequence(nn.Flatten, lambda: nn.Linear(5, 6), nn.ReLU),
    "sigmoid, no bias": sequence(lambda: nn.Linear(5, 6, bias=False), nn.Sigmoid, lambda: nn.Linear(6, 6)),
    "two functions in a row": sequence(lambda: nn.Linear(5, 6), nn.Tanh, nn.ReLU),
    "gelu": sequence(lambda: nn.Linear(5, 6), nn.GELU),
    "a function first": sequence(nn.Tanh, lambda: nn.Linear(5, 6)),
    "a function last": lambda shape, n: nn.Sequential(nn.Linear(5, n), nn.Tanh()),
}
WRITTEN_OUT = {"a layer used twice", "relu", "sigmoid, no bias", "a function last"}


@pytest.mark.parametrize("soft", [False, True], ids=["classes", "soft labels"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_network_trains_the_same_in_a_stack(kind, soft):
    def copies():
        numbered = enumerate(trainings(soft=soft))
        return [replace(each, module=build_network(KINDS[kind], (5,), 3, i).double()) for i, each in numbered]

    alone, together = copies(), copies()
    assert (layers_of(alone[0].module, True) is not None) == (kind in WRITTEN_OUT)
    for each in alone:
        train(each, ADAM)
    stack.train_stack(together, ADAM)
    assert furthest(alone, together) < 1e-9


def test_images_of_a_network_that_flattens_them_are_rows():
    network = build_network(mlp, (2, 4, 4), 3, 0)
    assert layers_of(network, False) is not None
    assert layers_of(network[1:], False) is None


def test_a_last_single_row_joins_the_batch_before_where_batches_are_normalised():
    module = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)).double()
    rng = np.random.default_rng(0)
    rows = torch.as_tensor(rng.normal(size=(17, 5)))
    train(Training(module, rows, torch.arange(17) % 3, np.random.default_rng(0)), ADAM)
    with pytest.raises(ModelError, match="single row"):
        train(Training(module, rows[:1], torch.zeros(1, dtype=torch.int64), np.random.default_rng(0)), ADAM)


def test_the_size_of_a_stack_is_bounded_by_bytes():
    # 784·100 + 100 + 100·100 + 100 + 100·10 + 10 weights of 4 bytes, with gradient and two moments.
    assert stack.most_in_a_stack(mlp((784,), 10)) == stack.STACK_BYTES // (16 * 89_610)
    huge = nn.Linear(4_096, 4_096)
    assert stack.most_in_a_stack(huge) == 1


def test_training_leaves_torchs_global_generator_alone():
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    train(trainings((50,))[0], ADAM)
    stack.train_stack(trainings((50, 40)), ADAM)
    assert torch.equal(before, torch.random.get_rng_state())


def test_the_rows_of_a_trained_stack_are_let_go_at_once(monkeypatch):
    references = []

    class Watched(stack.Stack):
        def __init__(self, *arguments) -> None:
            super().__init__(*arguments)
            references.append(weakref.ref(self))

    monkeypatch.setattr(stack, "Stack", Watched)
    gc.collect()
    gc.disable()
    try:
        stack.train_stack(trainings((50, 40)), ADAM)
        assert references[0]() is None, (
            "a cycle of references would keep hundreds of megabytes until the next collection"
        )
    finally:
        gc.enable()


def test_small_sets_of_rows_are_seen_more_often_where_nobody_says_how_often():
    auto = Recipe(None, 32, 1e-3, 0.0, "adam", 0.0)
    # 3,200 rows are 100 batches: ten epochs make a thousand steps. 100 rows are four batches: 250 epochs do.
    assert auto.epochs_for(3_200) == 10
    assert auto.epochs_for(60_000) == 10
    assert auto.epochs_for(100) == 250
    assert auto.steps(100) == 1_000
    assert ADAM.epochs_for(1) == 3
