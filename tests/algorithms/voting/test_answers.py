"""What students say is counted alike, in memory or on disk, at once or in blocks."""

from dataclasses import replace

import numpy as np
import pytest

from fedkt import pooling
from fedkt.algorithms import FedKT
from fedkt.algorithms.voting.answers import StudentAnswers, in_threads
from fedkt.bundle import Bundle
from fedkt.errors import ConfigurationError
from fedkt.federation import Server
from fedkt.models.base import FittedModel, fit_model
from fedkt.models.catalogue import as_estimator
from fedkt.system import scratch
from fedkt.system.scratch import OnDisk, Scratch

CLASSES = ("a", "b", "c")
PUBLIC = np.random.default_rng(5).normal(size=(90, 3)).astype(np.float32)


def bundles(voting):
    """Six parties whose students have learned other rows."""
    sent = []
    for place in range(6):
        rng = np.random.default_rng([1, place])
        X = rng.normal(size=(60, 3)).astype(np.float32)
        y = np.where(rng.random(60) < 0.7, X.argmax(axis=1), place % 3)
        outputs = 4 if voting == "expert-no-counts" else 3
        y[-4:] = outputs - 1
        students = [fit_model(as_estimator("naive-bayes"), X[n::2], y[n::2], rng=rng) for n in range(2)]
        students = students if voting == "consistent" else students[:1]
        counts = tuple(map(int, np.bincount(y, minlength=3))) if voting == "expert" else None
        soft, background = voting != "consistent", voting == "expert-no-counts"
        own = Bundle(f"p{place}", CLASSES, tuple(students), counts=counts, soft=soft, background_class=background)
        sent.append(own)
    return sent


def vote(voting, folder=None):
    """The labelled rows, and what the server has written down."""
    server = Server(PUBLIC, CLASSES, 0, scratch=folder)
    fedkt = FedKT("naive-bayes", voting=voting)
    answers = fedkt.student_answers(server, bundles(voting))
    return answers, fedkt.voting.label(fedkt, server, answers), server.diary


@pytest.mark.parametrize("voting", ["consistent", "expert", "expert-no-counts"])
def test_a_vote_is_the_same_to_the_bit_when_answers_lie_on_disk_and_are_read_in_blocks(voting, tmp_path, monkeypatch):
    monkeypatch.setattr(pooling, "BLOCK_VALUES", 6 * 3 * 7)
    _, whole, told = vote(voting)
    monkeypatch.setattr(pooling, "BLOCKS_READ", 3)
    monkeypatch.setattr(scratch, "MEMORY_BYTES", 100)
    answers, blocks, told_again = vote(voting, tmp_path)
    assert sum(isinstance(each, OnDisk) for _, each in answers.voters) >= 5
    np.testing.assert_array_equal(whole.labels, blocks.labels)
    np.testing.assert_array_equal(whole.distributions, blocks.distributions)
    assert told.notes == told_again.notes
    assert told.vote.figures() == told_again.vote.figures()


def test_what_cannot_be_kept_is_refused_before_a_student_is_run(monkeypatch, tmp_path):
    monkeypatch.setattr(FittedModel, "predict_proba", lambda *_: pytest.fail("a student was run"))
    monkeypatch.setattr(Scratch, "lacks", lambda self, size: size - 480)
    # 6 parties × 90 rows × 3 classes × 4 bytes are 6,480.
    with pytest.raises(ConfigurationError, match=r"missing in .* Make room") as refusal:
        vote("expert", tmp_path)
    assert "takes 0.0 GB" in str(refusal.value)


def test_where_no_students_agree_every_single_vote_counts():
    laid_aside = Scratch(memory=0)
    said = {"north": [[0, 1, 2, 2], [1, 2, 0, 0]], "south": [[1, 1, 1, 2], [2, 2, 0, 1]]}
    voters = [(Bundle(name, CLASSES, ()), laid_aside.keep(np.array(each, np.uint8))) for name, each in said.items()]
    server = Server(PUBLIC[:4], CLASSES, 0)
    fedkt = FedKT("tree", partitions=2)
    labelled = fedkt.voting.label(fedkt, server, StudentAnswers(voters))
    # Votes by row: 0 1 1 2, 1 2 1 2, 2 0 1 0, 2 0 2 1.
    counts = np.array([[1, 2, 1], [0, 2, 2], [2, 1, 1], [1, 1, 2]])
    np.testing.assert_array_equal(labelled.distributions, counts / 4)
    assert labelled.labels.tolist() in ([1, 1, 0, 2], [1, 2, 0, 2])
    assert "every student's own vote" in server.diary.notes[0]


@pytest.mark.parametrize("jobs", [1, 2, 5, -1])
def test_threads_give_results_in_order_and_hold_few_of_them(jobs):
    begun, ended = [], []

    def work(task):
        begun.append(task)
        return task * task

    for result in in_threads(work, iter(range(40)), jobs=jobs):
        ended.append(result)
        if jobs > 0:
            assert len(begun) - len(ended) <= jobs + 1
    assert ended == [each * each for each in range(40)]


def test_what_fails_in_a_thread_is_heard_of():
    def work(task):
        if task == 3:
            raise ConfigurationError("not this one")
        return task

    results = in_threads(work, iter(range(10)), jobs=2)
    with pytest.raises(ConfigurationError, match="not this one"):
        list(results)


def test_answers_of_received_students_and_of_ones_trained_here_are_the_same():
    from fedkt.models.exchange import to_soft_onnx

    sent = bundles("expert")
    travelled = [
        replace(each, models=tuple(to_soft_onnx(m, n_features=3, n_classes=3, check_rows=PUBLIC) for m in each.models))
        for each in sent
    ]
    fedkt = FedKT("naive-bayes", voting="expert")
    one, other = (fedkt.student_answers(Server(PUBLIC, CLASSES, 0), each) for each in (sent, travelled))
    for (_, here), (_, there) in zip(one.voters, other.voters, strict=True):
        np.testing.assert_allclose(np.asarray(here), np.asarray(there), atol=1e-5)
