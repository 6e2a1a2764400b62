"""The given half of chapter 08: checkpoints, data, errors and the progress bar. They test the reference."""

import io
import json
import os
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from grading.course import chapters as course
from meintorch.data import load_digits, make_moons
from meintorch.layers import Dropout, Linear, ReLU, Sequential
from meintorch.losses import binary_cross_entropy_with_logits, cross_entropy, hinge_loss, mse_loss
from meintorch.modules import in_eval_mode
from meintorch.optim import SGD, Adam, AdamW
from meintorch.tensor import Tensor
from meintorch.training import DataLoader, accuracy, evaluate, fit, load_checkpoint, save_checkpoint, train_step
from meintorch.transformer import Transformer


def network(seed: int = 0, width: int = 8) -> Sequential:
    rng = np.random.default_rng(seed)
    return Sequential(Linear(2, width, rng=rng), ReLU(), Linear(width, 1, rng=rng))


LINE = np.array([[0.0], [1.0], [2.0]]), np.array([[0.5], [2.5], [4.5]])  # inputs, answers


def fit_a_line(loss=mse_loss, loader=(LINE,), epochs=2, held_out=None, patience=None):
    model = Linear(1, 1, rng=0)
    return fit(model, loss, SGD(model.parameters(), lr=0.1), loader, epochs, held_out, patience)


def one_by_one(scores, answers):
    return mse_loss(scores, answers, "none")


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
        (lambda params: SGD([*params, Tensor(params[0].data.copy())], lr=0.1, momentum=0.9), "for some of them only"),
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


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole[:-10],
        lambda whole: b"",
        lambda whole: b"epoch 1, loss 0.5",
        lambda whole: whole[:400] + b"\xff" * 8 + whole[408:],
        lambda whole: np_file(np.ones(3)),
        lambda whole: np_file(np.array([None])),
    ],
    ids=["cut", "cut at the end", "empty", "text", "overwritten", "npy", "objects"],
)
def test_a_damaged_checkpoint_is_named_and_changes_nothing(damage, tmp_path):
    model, untouched = network(1), network(1)
    save_checkpoint(tmp_path / "moons.npz", network(2))
    (tmp_path / "moons.npz").write_bytes(damage((tmp_path / "moons.npz").read_bytes()))
    with pytest.raises(ValueError, match=r"moons.npz is not a checkpoint"):
        load_checkpoint(tmp_path / "moons.npz", model)
    assert same(model, untouched)


def np_file(array) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_what_does_not_fit_a_checkpoint_is_told_with_the_files_name(tmp_path):
    save_checkpoint(tmp_path / "moons.npz", network(width=9), SGD(network(width=9).parameters(), 0.1))
    for model, make in ((network(), None), (network(width=9), Adam)):
        with pytest.raises(ValueError, match=r"moons.npz: this (state does not fit|is the state of SGD)"):
            load_checkpoint(tmp_path / "moons.npz", model, make and make(model.parameters()))
    with pytest.raises(ValueError, match="is a folder"):
        load_checkpoint(tmp_path, network())
    with pytest.raises(FileNotFoundError, match=r"none.npz"):
        load_checkpoint(tmp_path / "none.npz", network())


@pytest.mark.parametrize(
    "note", [np.int64(1), np.ones(2), {1, 2}, Tensor([1.0])], ids=["int64", "array", "set", "Tensor"]
)
def test_a_note_that_json_cannot_hold_is_named_before_anything_is_written(note, tmp_path):
    with pytest.raises(TypeError, match="the note 'best' is nothing that JSON can hold"):
        save_checkpoint(tmp_path / "moons.npz", network(), epoch=1, best=note)
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_of_the_days_before_settings_were_saved_still_loads(tmp_path):
    model = network(1)
    optimizer = AdamW(model.parameters(), lr=0.3, betas=(0.5, 0.6))
    old = {"optimizer": "AdamW", "lr": 0.1, "steps": 0}
    arrays = {f"model/{name}": array for name, array in network(2).state_dict().items()}
    arrays |= {f"optimizer/{name}": np.asarray(value) for name, value in old.items()}
    np.savez(tmp_path / "moons.npz", notes=json.dumps({"epoch": 3}), **arrays)
    assert load_checkpoint(tmp_path / "moons.npz", model, optimizer) == {"epoch": 3}
    assert same(model, network(2))
    assert (optimizer.lr, optimizer.betas) == (0.1, (0.5, 0.6))


def test_notes_that_cannot_be_saved_leave_the_old_checkpoint(tmp_path):
    path = tmp_path / "moons.npz"
    save_checkpoint(path, network(1), epoch=1)
    with pytest.raises(TypeError, match="the note 'epoch' is nothing that JSON can hold"):
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
        (lambda: DataLoader(np.ones(3), np.ones(3), 2.0), TypeError, "batch_size is a whole number, not 2.0"),
        (lambda: DataLoader(np.ones(3), np.ones(3), True), TypeError, "of type bool"),
        (lambda: DataLoader(np.ones(3), np.ones(3), 1, seed="0"), TypeError, "seed .* not '0' of type str"),
        (lambda: DataLoader(np.ones(3), np.ones(3), 1, seed=-1), ValueError, "seed .* not -1"),
        (lambda: DataLoader(Tensor([1.0]), np.ones(1), 1), TypeError, "inputs of a DataLoader .* give its .data"),
        (lambda: DataLoader(np.ones(1), Tensor([1.0]), 1), TypeError, "answers of a DataLoader .* give its .data"),
        (lambda: DataLoader([[1.0], [1.0, 2.0]], [1, 2], 1), ValueError, "not rows of differing shapes"),
        (lambda: DataLoader(5.0, [1], 1), TypeError, "a row for each example, not 5.0"),
        (lambda: make_moons(0), ValueError, "n is at least 1, not 0"),
        (lambda: make_moons(5.5), TypeError, "n is a whole number"),
        (lambda: make_moons(5, -1.0), ValueError, "noise is 0 or more"),
        (lambda: make_moons(5, "much"), TypeError, "noise is a number"),
        (lambda: make_moons(5, seed="0"), TypeError, "seed"),
        (lambda: fit_a_line(epochs=-1), ValueError, "epochs is at least 0, not -1"),
        (lambda: fit_a_line(epochs=1.5), TypeError, "epochs is a whole number, not 1.5"),
        (lambda: fit_a_line(loader=[]), ValueError, "the loader is empty"),
        (lambda: fit_a_line(loader=5), TypeError, "a loader is a DataLoader, or a list of pairs .* not 5"),
        (lambda: fit_a_line(loader=(pair for pair in [LINE])), TypeError, "gives its batches in each of 2 epochs"),
        (lambda: fit_a_line(loader=(pair for pair in []), epochs=1), ValueError, "gave no batches in this epoch"),
        (lambda: fit_a_line(held_out=[]), ValueError, "the loader is empty"),
        (lambda: fit_a_line(held_out=[LINE], patience=1.5), TypeError, "patience is a whole number"),
        (lambda: fit_a_line(loss=SGD(network().parameters(), 0.1)), TypeError, "a loss is a function .* of type SGD"),
        (lambda: fit_a_line(loss=lambda scores, answers: 1.0), TypeError, "a loss returns a Tensor"),
        (lambda: evaluate(lambda x: x, mse_loss, [LINE]), TypeError, "a model is a Module"),
        (lambda: evaluate(Linear(1, 1), mse_loss, []), ValueError, "there are no examples to evaluate"),
        (lambda: evaluate(Linear(1, 1), one_by_one, [LINE]), ValueError, r"is one number .* not one of shape \(3, 1\)"),
        (
            lambda: fit(network(), hinge_loss, SGD(network().parameters(), lr=0.1), moons(), 2, patience=1),
            ValueError,
            "patience needs held_out",
        ),
        (
            lambda: fit(network(), hinge_loss, SGD(network().parameters(), lr=0.1), moons(), 2, moons(), patience=0),
            ValueError,
            "patience is at least 1, not 0",
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


def partly_in_eval_mode() -> Sequential:
    model = Sequential(Linear(2, 4, rng=0), Sequential(Dropout(0.5), Dropout(0.5)), Linear(4, 1, rng=0))
    model[1][0].eval()
    return model


def modes(model) -> list[bool]:
    return [model.training, *[child.training for child in (*model, *model[1])]]


def test_every_part_goes_back_to_its_own_mode():
    model = partly_in_eval_mode()
    before = modes(model)
    evaluate(model, hinge_loss, moons())
    assert modes(model) == before == [True, True, True, True, False, True]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_every_part_goes_back_to_its_own_mode_after_an_error_too(error):
    model = partly_in_eval_mode()
    before = modes(model)

    def interrupted(scores, answers):
        assert not any(modes(model))
        raise error

    with pytest.raises(error):
        evaluate(model, interrupted, moons())
    assert modes(model) == before


def test_eval_mode_lasts_as_long_as_its_block():
    model = partly_in_eval_mode()
    before = modes(model)
    with in_eval_mode(model):
        assert not any(modes(model))
    assert modes(model) == before


# What accuracy counts.

COLUMN = np.array([[0.5], [-2.0], [3.0]])


@pytest.mark.parametrize(
    ("scores", "labels", "share"),
    [
        (np.zeros((1, 1, 4)), np.ones((1, 1), int), 0.0),
        (np.zeros((1, 1, 4)), np.zeros((1, 1), int), 1.0),
        (np.eye(4)[[[0, 1], [2, 3], [0, 0]]], [[0, 1], [2, 0], [1, 1]], 0.5),
        (np.eye(3), [0, 1, 1], 2 / 3),
        (Tensor(np.eye(3)), np.array([0, 1, 1], np.uint8), 2 / 3),
        (COLUMN, [1, -1, -1], 2 / 3),
        (COLUMN, [1, 0, 0], 2 / 3),
        (COLUMN, [[1.0], [0.0], [0.0]], 2 / 3),
        (COLUMN[:, 0], [[1], [0], [0]], 2 / 3),
        (COLUMN[:, 0], [True, False, False], 2 / 3),
        (COLUMN[:, 0], Tensor([1.0, -1.0, 1.0]), 1.0),
        (np.array([-1.0, 2.0]), [0, 0], 0.5),
    ],
)
def test_accuracy_counts_classes_texts_and_two_classes_in_a_column(scores, labels, share):
    assert accuracy(scores, labels) == pytest.approx(share)


@pytest.mark.parametrize(
    ("scores", "labels", "error", "told"),
    [
        (np.eye(3), np.eye(3), ValueError, r"for one-hot rows give labels.argmax\(-1\)"),
        (np.eye(3), np.eye(3, dtype=int), ValueError, r"for one-hot rows give labels.argmax\(-1\)"),
        (np.eye(3), [[0], [1], [2]], ValueError, r"not \(3, 3\) and \(3, 1\)"),
        (np.eye(3), [0, 1], ValueError, r"not \(3, 3\) and \(2,\)"),
        (np.eye(3), [0, 1, 3], ValueError, "with 3 classes a label is from 0 to 2, not 3"),
        (np.eye(3), [0, 1, -1], ValueError, "not -1"),
        (np.eye(3), [0.0, 1.0, 2.0], TypeError, "class labels are integers, not float64"),
        (np.eye(2), [True, False], TypeError, "class labels are integers, not bool"),
        (np.ones((2, 3, 4)), np.zeros((3, 2), int), ValueError, r"not \(2, 3, 4\) and \(3, 2\)"),
        (np.ones((2, 3, 1)), np.zeros((2, 3), int), ValueError, r"not \(2, 3, 1\)"),
        (COLUMN, [1, 0, 2], ValueError, "labels are 1 and -1, or 1 and 0, and one of these is"),
        (COLUMN, [1, 0, -1], ValueError, "and one of these is 0"),
        (COLUMN, [0.3, 1.0, 2.5], ValueError, "and one of these is 0.3"),
        (COLUMN, [1, -1], ValueError, r"3 scores need as many labels, and these have shape \(2,\)"),
        ([], [], ValueError, "no answers to count"),
        (1.0, 1, ValueError, "no answers to count"),
        (COLUMN, None, TypeError, "labels are an array of real numbers, not None"),
        (COLUMN, ["a", "b", "c"], TypeError, "labels are an array of real numbers"),
    ],
)
def test_what_accuracy_cannot_count_is_refused_by_name(scores, labels, error, told):
    with pytest.raises(error, match=told):
        accuracy(scores, labels)


@pytest.mark.parametrize(
    ("answers", "outputs"),
    [
        (np.array([[0.5], [1.0], [0.0], [2.5], [1.0]]), 1),
        (np.array([[23], [1], [0], [64], [1]]), 1),
        (np.arange(10.0).reshape(5, 2), 2),
    ],
)
def test_a_regression_has_a_loss_and_no_accuracy(answers, outputs):
    """In batches of two some hold only 0 and 1: what the others hold decides."""
    model = Linear(1, outputs, rng=0)
    loader = DataLoader(np.arange(5.0).reshape(5, 1), answers, 2, shuffle=False)
    wanted = float(np.mean((model(loader.inputs).data - answers) ** 2))
    assert evaluate(model, mse_loss, loader) == (pytest.approx(wanted), None)
    history = fit(model, mse_loss, SGD(model.parameters(), 1e-4), loader, 2, held_out=loader, patience=1)
    assert [line["held_out_accuracy"] for line in history] == [None, None]
    assert json.loads(json.dumps(history)) == history


def test_two_classes_in_a_column_have_an_accuracy():
    model = Linear(1, 1, bias=False, rng=0)
    model.weight.data[:] = 1.0
    inputs = np.array([[0.5], [-2.0], [3.0]])
    assert evaluate(model, binary_cross_entropy_with_logits, [(inputs, np.array([[1], [0], [0]]))])[1] == 2 / 3
    assert evaluate(model, hinge_loss, [(inputs, np.array([[1], [-1], [-1]]))])[1] == 2 / 3


def test_one_hot_answers_are_refused_in_evaluate_too():
    with pytest.raises(ValueError, match="one-hot"):
        evaluate(Linear(1, 3), mse_loss, DataLoader(np.ones((3, 1)), np.eye(3), 3))


def test_a_language_model_is_fitted_and_evaluated():
    ids = np.random.default_rng(0).integers(0, 5, (6, 8))
    loader = DataLoader(ids[:, :-1], ids[:, 1:], 4)
    model = Transformer(5, 7, width=8, heads=2, blocks=1, rng=np.random.default_rng(0))
    history = fit(model, cross_entropy, Adam(model.parameters(), 0.01), loader, 2, held_out=loader)
    right = (model(ids[:, :-1]).data.argmax(-1) == ids[:, 1:]).mean()
    assert history[-1]["held_out_accuracy"] == pytest.approx(right)


def test_a_loss_that_is_no_single_number_moves_nothing():
    model = Linear(1, 1, rng=0)
    optimizer = SGD(model.parameters(), lr=0.1)
    with pytest.raises(ValueError, match=r'one number \(reduction="mean"\), not one of shape \(3, 1\)'):
        train_step(model, one_by_one, optimizer, *LINE)
    assert same(model, Linear(1, 1, rng=0))
    assert optimizer.steps == 0


def test_batches_may_come_in_a_list():
    assert [line["epoch"] for line in fit_a_line(loader=[LINE, LINE])] == [1, 2]
    assert len(fit_a_line(loader=(pair for pair in [LINE]), epochs=1)) == 1


def test_a_batch_size_may_be_one_of_numpys_numbers():
    assert len(list(DataLoader(np.ones(3), np.ones(3), np.int64(2)))) == 2


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
