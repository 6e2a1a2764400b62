"""The given half of chapter 08: checkpoints, data, errors and the progress bar. They test the reference."""

import json
import os
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from grading import course
from meintorch.data import load_digits, make_moons
from meintorch.layers import Dropout, Linear, ReLU, Sequential
from meintorch.losses import cross_entropy, hinge_loss
from meintorch.optim import SGD, Adam, AdamW
from meintorch.training import DataLoader, evaluate, fit, load_checkpoint, save_checkpoint, train_step


def network(seed: int = 0, width: int = 8) -> Sequential:
    rng = np.random.default_rng(seed)
    return Sequential(Linear(2, width, rng=rng), ReLU(), Linear(width, 1, rng=rng))


def moons(seed: int = 0) -> DataLoader:
    points, labels = make_moons(40, seed=seed)
    return DataLoader(points, labels.reshape(-1, 1), 16, seed=seed)


def same(one, other) -> bool:
    one, other = one.state_dict(), other.state_dict()
    return list(one) == list(other) and all(np.array_equal(one[name], other[name]) for name in one)


# Checkpoints.


def test_a_checkpoint_brings_back_the_parameters_and_the_notes(tmp_path):
    model, other = network(1), network(2)
    notes = {"epoch": 3, "best": 0.25, "history": [{"loss": 1.0}], "name": "müde"}
    save_checkpoint(tmp_path / "moons.npz", model, **notes)
    assert not same(model, other)
    assert load_checkpoint(tmp_path / "moons.npz", other) == notes
    assert same(model, other)
    assert [path.name for path in tmp_path.iterdir()] == ["moons.npz"]


def test_a_checkpoint_keeps_its_name_whatever_it_is(tmp_path):
    for name in ("moons", "moons.checkpoint", ".hidden"):
        save_checkpoint(str(tmp_path / name), network())
        load_checkpoint(str(tmp_path / name), network(1))
    assert sorted(path.name for path in tmp_path.iterdir()) == [".hidden", "moons", "moons.checkpoint"]


def test_a_checkpoint_is_as_readable_as_any_other_file(tmp_path):
    (tmp_path / "other").write_bytes(b"")
    save_checkpoint(tmp_path / "moons.npz", network())
    assert (tmp_path / "moons.npz").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_float32_parameters_stay_float32(tmp_path):
    model, other = (Linear(2, 3, dtype=np.float32, rng=np.random.default_rng(seed)) for seed in (0, 1))
    save_checkpoint(tmp_path / "layer.npz", model, Adam(model.parameters()))
    load_checkpoint(tmp_path / "layer.npz", other)
    assert other.weight.dtype == np.float32
    assert same(model, other)


@pytest.mark.parametrize(
    "make",
    [
        lambda params: SGD(params, lr=0.1),
        lambda params: SGD(params, lr=0.1, momentum=0.9),
        lambda params: Adam(params, lr=0.01),
        lambda params: AdamW(params, lr=0.01),
    ],
)
def test_training_goes_on_from_a_checkpoint_with_exactly_the_same_numbers(make, tmp_path):
    """Six epochs in one go, and three, a checkpoint, a new start and three more."""
    model, loader = network(), moons()
    whole = fit(model, hinge_loss, make(model.parameters()), loader, 6)

    first, loader = network(), moons()
    optimizer = make(first.parameters())
    start = fit(first, hinge_loss, optimizer, loader, 3)
    save_checkpoint(tmp_path / "half.npz", first, optimizer, rng=loader.rng.bit_generator.state)

    second, loader = network(9), moons()
    optimizer = make(second.parameters())
    optimizer.lr = 7.0
    loader.rng.bit_generator.state = load_checkpoint(tmp_path / "half.npz", second, optimizer)["rng"]
    rest = fit(second, hinge_loss, optimizer, loader, 3)
    assert [line["loss"] for line in whole] == [line["loss"] for line in start + rest]
    assert same(model, second)


def test_an_optimizer_that_was_not_saved_cannot_be_loaded(tmp_path):
    model, other = network(1), network(2)
    save_checkpoint(tmp_path / "moons.npz", model)
    before = other.state_dict()
    with pytest.raises(ValueError, match="saved without an optimizer"):
        load_checkpoint(tmp_path / "moons.npz", other, Adam(other.parameters()))
    assert all(np.array_equal(before[name], array) for name, array in other.state_dict().items())


def test_a_checkpoint_of_another_network_is_refused_and_changes_nothing(tmp_path):
    save_checkpoint(tmp_path / "wide.npz", network(width=9))
    model, untouched = network(), network()
    with pytest.raises(ValueError, match=r"0.weight has shape \(2, 9\), expected \(2, 8\)"):
        load_checkpoint(tmp_path / "wide.npz", model)
    assert same(model, untouched)
    with pytest.raises(FileNotFoundError):
        load_checkpoint(tmp_path / "none.npz", model)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda params: Adam(params), "the state of SGD, and the optimizer is Adam"),
        (lambda params: SGD(params[:-1], lr=0.1, momentum=0.9), "does not fit the parameters"),
        (lambda params: SGD([*params, params[0]], lr=0.1, momentum=0.9), "for some of them only"),
    ],
)
def test_a_checkpoint_of_another_optimizer_is_refused_and_changes_nothing(make, message, tmp_path):
    model = network(1)
    optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9)
    fit(model, hinge_loss, optimizer, moons(), 1)
    save_checkpoint(tmp_path / "moons.npz", model, optimizer)
    other, untouched = network(2), network(2)
    wrong = make(other.parameters())
    with pytest.raises(ValueError, match=message):
        load_checkpoint(tmp_path / "moons.npz", other, wrong)
    assert same(other, untouched)
    assert (wrong.steps, wrong.state) == (0, [{} for _ in wrong.params])


def test_a_file_that_is_no_checkpoint_is_refused(tmp_path):
    np.savez(tmp_path / "other.npz", weight=np.ones(3))
    with pytest.raises(ValueError, match="is not a checkpoint"):
        load_checkpoint(tmp_path / "other.npz", network())


def test_notes_that_cannot_be_saved_leave_the_old_checkpoint(tmp_path):
    path = tmp_path / "moons.npz"
    save_checkpoint(path, network(1), epoch=1)
    with pytest.raises(TypeError, match="JSON"):
        save_checkpoint(path, network(2), epoch=object())
    assert load_checkpoint(path, network()) == {"epoch": 1}
    assert [one.name for one in tmp_path.iterdir()] == ["moons.npz"]


def test_an_error_in_the_middle_of_writing_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "moons.npz"
    save_checkpoint(path, network(1), epoch=1)

    def half_written(file, **arrays):
        file.write(b"PK\x03\x04 and then the disk is full")
        raise OSError("No space left on device")

    monkeypatch.setattr(np, "savez", half_written)
    with pytest.raises(OSError, match="No space"):
        save_checkpoint(path, network(2), epoch=2)
    monkeypatch.undo()
    model = network()
    assert load_checkpoint(path, model) == {"epoch": 1}
    assert same(model, network(1))
    assert [one.name for one in tmp_path.iterdir()] == ["moons.npz"]


def test_a_kill_in_the_middle_of_saving_leaves_a_whole_checkpoint(tmp_path):
    """A process saves without a pause, and is killed at some moment, eight times."""
    script = """
        import sys
        import numpy as np
        from meintorch.layers import Linear
        from meintorch.training import save_checkpoint

        model = Linear(200, 200, rng=np.random.default_rng(0))
        number = 0
        while True:
            number += 1
            model.weight.data[:] = number
            save_checkpoint(sys.argv[1], model, number=number)
            print(number, flush=True)
    """
    path = tmp_path / "layer.npz"
    for attempt in range(8):
        command = [sys.executable, "-c", textwrap.dedent(script), str(path)]
        with subprocess.Popen(command, cwd=course.REFERENCE.parent, stdout=subprocess.PIPE) as process:
            try:
                said = process.stdout.readline()
                time.sleep(0.003 * attempt)
            finally:
                process.kill()
        assert said == b"1\n"
        model = Linear(200, 200)
        number = load_checkpoint(path, model)["number"]
        assert number >= 1
        assert (model.weight.data == number).all()


# Data.


def test_the_digits_are_1797_pictures_of_ten_kinds():
    images, labels = load_digits()
    assert (images.shape, images.dtype, labels.shape) == ((1797, 64), np.float64, (1797,))
    assert labels.dtype.kind == "i"
    assert images.min() == 0.0
    assert images.max() == 1.0
    assert np.array_equal(images * 16, np.round(images * 16))
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    again, _ = load_digits()
    again[:] = 0.0
    assert load_digits()[0].any()


def test_a_mean_digit_looks_like_itself():
    """The nearest of the ten mean pictures is the right one for nine of ten digits."""
    images, labels = load_digits()
    means = np.stack([images[labels == digit].mean(axis=0) for digit in range(10)])
    nearest = ((images[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == labels).mean() > 0.9


def test_the_moons_hold_what_their_arguments_say():
    points, labels = make_moons(7, noise=0.0)
    assert points.shape == (7, 2)
    assert labels.tolist() == [1, 1, 1, -1, -1, -1, -1]
    lower = points[labels == -1]
    np.testing.assert_allclose((lower[:, 0] - 1.0) ** 2 + (lower[:, 1] - 0.5) ** 2, 1.0)
    assert not np.array_equal(make_moons(7, seed=1)[0], make_moons(7, seed=2)[0])
    spread = make_moons(4000, noise=0.2)[0] - make_moons(4000, noise=0.0)[0]
    assert abs(spread.std() - 0.2) < 0.01


def test_moons_lie_apart_only_for_a_bent_line():
    """The best straight line gets some of them wrong, a small network none."""
    points, labels = make_moons(100)
    with_one = np.column_stack([points, np.ones(100)])
    line, *_ = np.linalg.lstsq(with_one, labels, rcond=None)
    assert (np.sign(with_one @ line) == labels).mean() < 0.95


# The loader, fit and evaluate.


@pytest.mark.parametrize(
    ("call", "error", "named"),
    [
        (lambda: DataLoader(np.ones(3), np.ones(2), 1), ValueError, "3 inputs and 2 answers"),
        (lambda: DataLoader(np.ones(3), np.ones(3), 0), ValueError, "not 0"),
        (lambda: DataLoader(np.ones(3), np.ones(3), -2), ValueError, "not -2"),
        (lambda: DataLoader(np.ones((0, 2)), np.ones(0), 1), ValueError, "no examples"),
        (
            lambda: fit(network(), hinge_loss, SGD(network().parameters(), lr=0.1), moons(), 2, patience=1),
            ValueError,
            "patience needs held_out",
        ),
        (
            lambda: fit(network(), hinge_loss, SGD(network().parameters(), lr=0.1), moons(), 2, moons(), patience=0),
            ValueError,
            "at least 1 epoch, not 0",
        ),
    ],
)
def test_bad_arguments_are_refused_by_name(call, error, named):
    with pytest.raises(error, match=named):
        call()


def test_lists_are_taken_for_arrays():
    batches = list(DataLoader([[1.0], [2.0], [3.0]], [1, 2, 3], 2, shuffle=False))
    assert [(inputs.tolist(), answers.tolist()) for inputs, answers in batches] == [
        ([[1.0], [2.0]], [1, 2]),
        ([[3.0]], [3]),
    ]


def test_no_epochs_are_no_lines():
    model = network()
    assert fit(model, hinge_loss, SGD(model.parameters(), lr=0.1), moons(), 0) == []
    assert same(model, network())
    assert fit(model, hinge_loss, SGD(model.parameters(), lr=0.1), moons(), 0, moons(), patience=1) == []


def test_a_history_can_be_saved_as_json():
    model = network()
    history = fit(model, hinge_loss, SGD(model.parameters(), lr=0.1), moons(), 2, held_out=moons(1))
    assert json.loads(json.dumps(history)) == history


def test_losses_that_are_not_numbers_run_out_of_patience():
    model = network()
    model.children()["0"].weight.data[:] = np.nan
    history = fit(model, hinge_loss, SGD(model.parameters(), lr=0.1), moons(), 9, held_out=moons(1), patience=2)
    assert len(history) == 2


@pytest.mark.parametrize("patience", [None, 1])
def test_a_progress_bar_changes_nothing(patience, capsys):
    histories = []
    for progress in (False, True):
        model = network()
        # With lr 0 nothing gets better: with patience 1 the bar is left in the middle.
        optimizer = SGD(model.parameters(), lr=0.1 if patience is None else 0.0)
        held_out = moons(1)
        held_out.shuffle = False  # in another order the sum may differ in its last digit
        histories.append(fit(model, hinge_loss, optimizer, moons(), 3, held_out, patience, progress=progress))
        printed = capsys.readouterr()
        assert ("training" in printed.out) == progress
        assert printed.err == ""
    assert histories[0] == histories[1]
    assert len(histories[0]) == (3 if patience is None else 2)


def test_a_progress_bar_keeps_to_plain_characters_where_there_is_nothing_else():
    script = """
        import numpy as np
        from meintorch import SGD, DataLoader, Linear, fit, mse_loss

        model = Linear(1, 1)
        loader = DataLoader(np.ones((4, 1)), np.ones((4, 1)), 2)
        fit(model, mse_loss, SGD(model.parameters(), lr=0.1), loader, 3, progress=True)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=course.REFERENCE.parent,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "NO_COLOR": "1"},
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\x1b" not in done.stdout


def test_dropout_is_off_while_it_is_evaluated_and_on_again_afterwards():
    rng = np.random.default_rng(0)
    model = Sequential(Linear(2, 64, rng=rng), ReLU(), Dropout(0.5, rng=rng), Linear(64, 1, rng=rng))
    fixed = moons()
    fixed.shuffle = False
    assert evaluate(model, hinge_loss, fixed) == evaluate(model, hinge_loss, fixed)
    assert all(child.training for child in model.children().values())


def test_the_two_milestones_have_room_to_spare():
    """From ten seeds each: the bands of the milestone tests are no matter of luck."""
    points, labels = make_moons(100, seed=0)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        model = Sequential(Linear(2, 16, rng=rng), ReLU(), Linear(16, 16, rng=rng), ReLU(), Linear(16, 1, rng=rng))
        optimizer = Adam(model.parameters(), lr=0.02)
        for _ in range(200):
            train_step(model, hinge_loss, optimizer, points, labels.reshape(-1, 1))
        assert (np.sign(model(points).data[:, 0]) == labels).all(), seed
    images, digits = load_digits()
    order = np.random.default_rng(0).permutation(len(images))
    images, digits = images[order], digits[order]
    held_out = DataLoader(images[1400:], digits[1400:], 397)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        model = Sequential(Linear(64, 64, rng=rng), ReLU(), Linear(64, 10, rng=rng))
        loader = DataLoader(images[:1400], digits[:1400], 32, seed=seed)
        fit(model, cross_entropy, Adam(model.parameters(), lr=5e-3), loader, 20)
        assert evaluate(model, cross_entropy, held_out)[1] >= 0.975, seed
