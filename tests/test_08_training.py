"""The checks of chapter 08: python grader.py 08"""

import contextlib
import gc
import itertools
import weakref

import numpy as np
import pytest

from meintorch.data import load_digits, make_moons
from meintorch.layers import Dropout, Linear, Module, ReLU, Sequential
from meintorch.losses import cross_entropy, hinge_loss, l2_penalty, mse_loss
from meintorch.mlp import MLP
from meintorch.mlp import hinge_loss as hinge_loss_of_values
from meintorch.optim import Adam, Optimizer
from meintorch.shapes import mean
from meintorch.tensor import Tensor, as_tensor
from meintorch.training import Best, DataLoader, accuracy, evaluate, fit, train_step
from tests._helpers import (
    CheckFailed,
    ask,
    check_close,
    check_twice,
    explained,
    first_that_tells,
    nothing_else_changes,
    which_formula,
)


@pytest.mark.task("08.2")
def test_a_network_of_337_numbers_learns_all_hundred_moons():
    """Chapter 01 took two seconds for 98 of them."""
    points, labels = make_moons(100, seed=0)
    labels = labels.reshape(-1, 1)
    model = network(2, 16, 16, 1, seed=3)
    optimizer = Adam(model.parameters(), lr=0.02)

    def loss(scores, answers):
        return hinge_loss(scores, answers) + l2_penalty(model.parameters(), 1e-4)

    for _ in range(200):
        step_of(model, loss, optimizer, points, labels)
    right = np.sum(np.sign(model(points).data) == labels)
    if right < 100:
        message = f"after 200 steps on all 100 moons, {right} of them are on the right side, expected 100"
        raise CheckFailed(message, ask(why_a_step_is_wrong))


@pytest.mark.task("08.1")
def test_ten_examples_in_batches_of_four_make_four_and_four_and_two():
    inputs, answers = example_arrays(10)
    batches = batches_of(DataLoader(inputs, answers, 4, shuffle=False), "10 examples in batches of 4")
    sizes = [len(one) for one, _ in batches]
    if sizes != [4, 4, 2]:
        why = {
            (4, 4): "The short batch at the end is missing: a batch may be shorter, and every example counts.",
            (4,): "The round ends after one batch: is there a return where a yield belongs?",
            (10,): "Everything comes in one batch: self.batch_size says how many belong in each.",
            (1,) * 10: "They come one by one: self.batch_size says how many belong in a batch.",
            (3,): "len(self) is the number of batches: there are as many examples as self.inputs has.",
            (3, 3, 2): "One is missing in every batch: a slice leaves out its end as it is.",
            (3, 3, 1): "One is missing in every batch: a slice leaves out its end as it is.",
            (4, 4, 4): "The last batch is filled up: it holds only what is left.",
            (
                4,
                3,
                3,
            ): "The batches are made about equally large: each holds self.batch_size, and the last what is left.",
            (4, 0, 0): "Only the first batch holds anything: a slice has a start and an end, start + self.batch_size.",
            (2, 4, 4): "The short batch comes first: it is the last one, with what is left.",
        }
        seen = np.concatenate([one[:, 0] for one, _ in batches]) if batches else np.array([])
        if np.unique(seen).size < seen.size:
            cause = "Some examples come twice: the next batch starts a whole batch further on."
        else:
            cause = why.get(tuple(sizes))
        raise CheckFailed(f"10 examples in batches of 4 come in {sizes}, expected [4, 4, 2]", cause)
    what = "10 examples in batches of 4, not shuffled:\nthe {} of batch {}"
    if np.array_equal(batches[1][0], answers[4:8]):
        raise CheckFailed(
            "10 examples: a batch is a pair (answers, inputs)", "The inputs come first: (inputs, answers)."
        )
    check_close(batches[1][0], inputs[4:8], what.format("inputs", 2), probe=shuffled_unasked)
    check_close(batches[1][1], answers[4:8], what.format("answers", 2), probe=shuffled_unasked)
    check_close(batches[2][0], inputs[8:], what.format("inputs", 3), probe=shuffled_unasked)


@pytest.mark.task("08.1")
def test_every_answer_stays_with_its_input():
    """The answer to 7 is 70, wherever the two of them come."""
    inputs, answers = example_arrays(20)
    loader = DataLoader(inputs, answers, 6, seed=1)
    for _ in range(2):
        for one, two in batches_of(loader, "20 examples, shuffled"):
            if len(one) != len(two):
                raise CheckFailed(f"a batch has {len(one)} inputs and {len(two)} answers")
            wrong = np.flatnonzero(10.0 * one[:, 0] != two)
            if wrong.size:
                given, got = one[wrong[0], 0], two[wrong[0]]
                raise CheckFailed(
                    f"input {given:.0f} comes with the answer {got:.0f}, expected {10 * given:.0f}",
                    "Inputs and answers come in different orders: one order has to serve for both.",
                )


@pytest.mark.task("08.1")
def test_a_shuffled_round_brings_every_example_exactly_once():
    inputs, answers = example_arrays(50)
    order = order_of(DataLoader(inputs, answers, 8, seed=2), "50 examples, shuffled")
    missing = sorted(set(range(50)) - set(order))
    if missing:
        twice = len(order) - len(set(order))
        raise CheckFailed(
            f"50 examples, shuffled: {len(missing)} of them never come, {twice} come again",
            "They are drawn anew each time, so some come twice and others not at all. Shuffling only changes the order."
            if len(order) == 50
            else "The last batch is dropped: it may be shorter."
            if len(order) == 48
            else None,
        )
    if len(order) != 50:
        raise CheckFailed(f"a round of 50 examples brings {len(order)}")
    if order == list(range(50)):
        raise CheckFailed(
            "50 examples, to be shuffled, come in the order of the arrays",
            "With shuffle=True the order has to be a random one.",
        )
    together = [order[i : i + 8] for i in range(0, 48, 8) if max(order[i : i + 8]) - min(order[i : i + 8]) == 7]
    if together:
        raise CheckFailed(
            f"50 examples, shuffled: one of the batches is {together[0]}",
            "The examples of a batch are neighbours still, so the same ones always come together. Shuffle first, cut "
            "afterwards.",
        )


@pytest.mark.task("08.1")
def test_every_round_has_an_order_of_its_own():
    inputs, answers = example_arrays(20)
    loader = DataLoader(inputs, answers, 5, seed=3)
    first, second = (order_of(loader, "20 examples, shuffled") for _ in range(2))
    if first == second:
        raise CheckFailed(
            f"20 examples, shuffled: two rounds in a row both begin with {first[:5]}",
            "The order is the same in every round. self.rng goes on from round to round; a generator that is made anew "
            "starts again.",
        )


@pytest.mark.task("08.1")
def test_the_same_seed_brings_the_same_orders():
    orders = []
    for seed in (4, 4, 5):
        loader = DataLoader(*example_arrays(20), 5, seed=seed)
        orders.append(order_of(loader, "20 examples, shuffled") + order_of(loader, "20 examples, shuffled"))
    why = "The chance has to come from self.rng, which was made from the seed, and from nowhere else."
    if orders[0] != orders[1]:
        raise CheckFailed("two loaders with seed=4 bring their examples in different orders", why)
    if orders[0] == orders[2]:
        raise CheckFailed("loaders with seed=4 and seed=5 bring their examples in the same order", why)


@pytest.mark.task("08.1")
def test_shuffling_leaves_the_arrays_as_they_are():
    inputs, answers = example_arrays(20)
    loader = DataLoader(inputs, answers, 5, seed=6)
    batches_of(loader, "20 examples, shuffled")
    before, after = example_arrays(20), (inputs, answers)
    if not all(np.array_equal(one, two) for one, two in zip(before, after)):
        raise CheckFailed(
            f"after a shuffled round the caller's own array begins with {inputs[:3, 0]}, expected [0. 1. 2.]",
            "The arrays themselves were shuffled, and they belong to others too. Shuffle the row numbers instead.",
        )


@pytest.mark.task("08.1")
def test_two_rounds_may_go_on_at_once():
    """Whoever compares each batch with all others goes through the loader inside of a loop through it."""
    loader = DataLoader(*example_arrays(6), 2, seed=8)
    alone = order_of(loader, "6 examples, shuffled")
    if sorted(alone) != list(range(6)):
        raise CheckFailed(f"a round of 6 examples brings {alone}")
    outer, what = [], "6 examples, shuffled, a round begun inside of every batch of another round"
    for one, _ in drawn_from(loader.__iter__()):
        outer += one[:, 0].astype(int).tolist()
        inner = order_of(loader, what)
        if sorted(inner) != list(range(6)) or len(outer) > 6:
            break
    if sorted(outer) != list(range(6)) or sorted(inner) != list(range(6)):
        raise CheckFailed(
            f"{what}: the outer round brings {outer}, the last inner one {inner}",
            "The two rounds share something: order and place of a round are names of its own, and nothing of self.",
        )


@pytest.mark.task("08.2")
def test_a_step_moves_the_weight_against_its_gradient():
    """The outputs are w and 3w and should be 0: the loss is (w² + 9w²) / 2 = 5w², its gradient 10w."""
    model, optimizer = scale(1.0, lr=0.05)
    value = step_of(model, mse_loss, optimizer, *ONE_AND_THREE)
    check_close(model.w.data, np.array([0.5]), f"{SCALED}:\nafter a step, w", probe=why_a_step_is_wrong)
    check_number(value, 5.0, f"{SCALED}:\nwhat train_step returns", probe=which_loss)


@pytest.mark.task("08.2")
def test_a_second_step_starts_with_fresh_gradients():
    model, optimizer = scale(1.0, lr=0.05)
    values = [step_of(model, mse_loss, optimizer, *ONE_AND_THREE) for _ in range(2)]
    check_close(model.w.data, np.array([0.25]), f"{SCALED}:\nafter two steps, w", probe=why_a_step_is_wrong)
    check_number(values[1], 1.25, f"{SCALED}:\nwhat the second train_step returns", probe=which_loss)


@pytest.mark.task("08.2")
def test_gradients_from_before_do_not_count():
    """Somebody called backward() in between: that is no part of this batch."""
    model, optimizer = scale(1.0, lr=0.05)
    model.w.grad = np.array([100.0])
    step_of(model, mse_loss, optimizer, *ONE_AND_THREE)
    what = f"{SCALED}, w.grad 100 from before:\nafter a step, w"
    check_close(model.w.data, np.array([0.5]), what, probe=why_a_step_is_wrong)


@pytest.mark.task("08.2")
def test_from_the_weights_of_chapter_01_a_step_follows_its_gradients():
    """With learning rate 1 the way that a parameter has gone is its gradient. 337 of them, the same two ways."""
    points, labels = (array[::10] for array in make_moons(100, seed=0))
    values = MLP(2, [16, 16, 1], seed=1)
    loss = hinge_loss_of_values([values(point) for point in points], labels.tolist(), values.parameters(), 1e-2)
    model = network(2, 16, 16, 1, seed=0)
    linears = [model.children()[name] for name in ("0", "2", "4")]
    for linear, layer in zip(linears, values.layers):
        linear.weight.data = np.array([[w.data for w in neuron.weights] for neuron in layer.neurons]).T
        linear.bias.data = np.array([neuron.bias.data for neuron in layer.neurons])
    before = [(linear.weight.data.copy(), linear.bias.data.copy()) for linear in linears]
    optimizer = Plain(model.parameters(), lr=1.0)

    def same_loss(scores, answers):
        return hinge_loss(scores, answers) + l2_penalty(model.parameters(), 1e-2)

    value = step_of(model, same_loss, optimizer, points, labels.reshape(-1, 1))
    check_number(value, loss.data, "the loss of ten moons with the weights of chapter 01's network", probe=which_loss)
    loss.backward()
    for number, (linear, layer, (weight, bias)) in enumerate(zip(linears, values.layers, before), 1):
        wanted = np.array([[w.grad for w in neuron.weights] for neuron in layer.neurons]).T
        what = f"ten moons, the weights of chapter 01's network: the gradient of the {{}} of layer {number}"
        moved = weight - linear.weight.data
        check_close(moved, wanted, what.format("weights"), tolerance=1e-7, probe=why_a_step_is_wrong)
        wanted = np.array([neuron.bias.grad for neuron in layer.neurons])
        check_close(bias - linear.bias.data, wanted, what.format("biases"), tolerance=1e-7, probe=why_a_step_is_wrong)


@pytest.mark.task("08.2")
def test_the_graph_of_a_step_is_gone_when_its_number_is_kept():
    model, optimizer = scale(1.0, lr=0.05)
    loss, watch = watched(mse_loss)
    kept = step_of(model, loss, optimizer, *ONE_AND_THREE)
    check_number(kept, 5.0, f"{SCALED}:\nwhat train_step returns", probe=which_loss)
    check_gone(watch, "after a step whose result is kept")


@pytest.mark.task("08.3")
def test_three_right_answers_of_four_are_three_quarters():
    """The highest of each row: class 2, class 0, class 1, class 1."""
    scores = Tensor([[0.1, 0.2, 0.7], [5.0, 1.0, -2.0], [-3.0, -1.0, -2.0], [0.0, 4.0, 1.0]])
    what = "four rows of three scores, the first three right:\ntheir accuracy"
    check_share(scores, np.array([2, 0, 1, 2]), 0.75, what, which_accuracy)


@pytest.mark.task("08.3")
def test_with_two_classes_the_higher_score_wins_too():
    scores = np.array([[1.0, 3.0], [-1.0, -3.0], [2.0, 1.0], [4.0, 5.0]])
    what = "four rows of two scores, two of them right:\ntheir accuracy"
    check_share(scores, np.array([1, 0, 1, 0]), 0.5, what, which_accuracy)


@pytest.mark.task("08.3")
def test_a_single_score_answers_with_its_sign():
    labels = np.array([1, -1, 1, -1])
    what = "scores 0.2, -3, -0.5 and -0.1, labels 1, -1, 1 and -1, in shapes {} and {}:\ntheir accuracy"
    for shape in ((4,), (4, 1)):
        scores = np.array([0.2, -3.0, -0.5, -0.1]).reshape(shape)
        check_share(scores, labels.reshape(shape), 0.75, what.format(shape, shape), which_sign)


@pytest.mark.task("08.3")
def test_the_labels_of_two_classes_may_be_1_and_0_too():
    """A score of 0.2 says yes, the others say no: right, right, wrong, wrong and right."""
    scores, labels = np.array([0.2, -3.0, -0.5, 0.1, -2.0]), np.array([1, 0, 1, 0, 0])
    what = "scores 0.2, -3, -0.5, 0.1 and -2, labels 1, 0, 1, 0 and 0, in shape {}:\ntheir accuracy"
    for shape in ((5,), (5, 1)):
        check_share(scores.reshape(shape), labels.reshape(shape), 0.6, what.format(shape), which_zero)


@pytest.mark.task("08.3")
def test_a_column_of_scores_meets_its_labels_one_by_one():
    """Shape (4, 1) beside (4,): NumPy would compare each score with each label."""
    scores = np.array([[0.2], [-3.0], [0.5], [2.0]])
    what = "scores of shape (4, 1), labels of shape (4,), all right:\ntheir accuracy"
    look_again = first_that_tells(which_sign, half_as_threshold)
    check_share(Tensor(scores), np.array([1, -1, 1, 1]), 1.0, what, look_again)


@pytest.mark.task("08.3")
def test_whoever_cannot_decide_is_not_always_right():
    """All scores equal, labels 0 and 1: whichever class is taken, it is right for half of them."""
    what = "four rows of two equal scores, labels 0, 1, 0 and 1:\ntheir accuracy"
    check_share(np.zeros((4, 2)), np.array([0, 1, 0, 1]), 0.5, what, which_accuracy)


@pytest.mark.task("08.4")
def test_every_example_counts_the_same_though_the_last_batch_is_short():
    """The losses are 3, 0 and 3, in a batch of two and one of one. Their mean is 2, and one of three is right."""
    model, loader = pass_on(), loader_of([-2.0, 2.0, -2.0], [1, 1, 1], 2)
    for what in ("scores -2, 2 and -2, all labels 1, in batches of 2:\n", "the same once more:\n"):
        with nothing_else_changes("evaluate", w=model.w, inputs=loader.inputs, answers=loader.answers):
            result = pair_of(evaluate(model, hinge_loss, loader))
        check_number(result[0], 2.0, f"{what}the mean hinge loss", probe=which_mean)
        check_number(result[1], 1.0 / 3.0, f"{what}the accuracy", probe=which_mean)


@pytest.mark.task("08.4")
def test_the_model_is_in_eval_mode_while_it_is_looked_at():
    model = Watcher().train()
    evaluate(model, hinge_loss, loader_of([2.0, 2.0, -2.0], [1, 1, 1], 2))
    if not model.modes:
        raise CheckFailed("the model is never called")
    if any(mode for modes in model.modes for mode in modes):
        whole = all(modes[0] for modes in model.modes)
        raise CheckFailed(
            "while it is evaluated, the model is in train mode"
            if whole
            else "while it is evaluated, a module inside the model is in train mode",
            "A Dropout in it would drop numbers: model.eval() has to come before the first batch."
            if whole
            else "Setting model.training reaches the outermost module only: model.eval() reaches all of them.",
        )


@pytest.mark.task("08.4")
def test_afterwards_the_model_is_in_the_mode_it_was_in():
    for training in (True, False):
        model = Watcher()
        model = model.train() if training else model.eval()
        evaluate(model, hinge_loss, loader_of([2.0, 2.0, -2.0], [1, 1, 1], 2))
        names = {True: "train", False: "eval"}
        if (model.training, model.inside.training) != (training, training):
            raise CheckFailed(
                f"the model was in {names[training]} mode, and after evaluate it is in {names[not training]} mode",
                "Eval mode was left on: who trains on with it trains without dropout."
                if training
                else "It was not training before, and has to be left as it was.",
            )


@pytest.mark.task("08.4")
def test_nothing_is_learned_from_the_examples():
    model = pass_on()
    model.w.grad = np.array([7.0])
    evaluate(model, hinge_loss, loader_of([0.5, 2.0, -2.0], [1, 1, 1], 2))
    check_close(model.w.data, np.array([1.0]), "after evaluate, the weight of the model, 1 before,")
    if model.w.grad.tolist() != [7.0]:
        raise CheckFailed(
            f"w.grad was 7.0 before evaluate, and is {model.w.grad[0]} after it",
            "Looking needs no gradients: no backward() and no zero_grad().",
        )


@pytest.mark.task("08.4")
def test_no_graph_of_an_evaluated_batch_stays():
    """Neither afterwards, nor while the next batches are looked at: a held-out set may be large."""
    (loss, watch), model = watched(hinge_loss), Counting()
    kept = pair_of(evaluate(model, loss, loader_of([2.0, 2.0, -2.0, 2.0, 2.0, -2.0], [1] * 6, 1)))
    check_number(kept[0], 1.0, "the mean loss that evaluate returns", probe=which_mean)
    check_number(kept[1], 2.0 / 3.0, "the accuracy that evaluate returns", probe=which_mean)
    check_gone(watch, "after evaluate, while its two numbers are kept")
    model.check_alive("evaluate")


@pytest.mark.task("08.5")
def test_a_small_network_reads_at_least_97_of_100_digits_it_has_never_seen():
    """Ten classes: guessing would give 10."""
    share = digits_read(seed=0)
    if share < 0.97:
        raise CheckFailed(
            f"after 20 epochs {share:.1%} of the held-out digits are read correctly, expected at least 97 %",
            ask(why_it_does_not_learn),
        )


@pytest.mark.task("08.5")
def test_a_line_of_history_for_every_epoch():
    """Every step halves w, so the losses w² of the first epoch are 1 and 1/4, and w is 1/4 when it ends."""
    (model, optimizer), loader = scale(1.0, lr=0.25), ones(2, 0.0)
    with nothing_else_changes("fit", inputs=loader.inputs, answers=loader.answers):
        history = lines_of(fit(model, mse_loss, optimizer, loader, 2), 2, {"epoch", "loss"})
    if optimizer.lr != 0.25:
        why = "The learning rate belongs to whoever calls fit: leave it as it is."
        raise CheckFailed(f"after fit, the learning rate is {optimizer.lr}, and was 0.25 before", why)
    if history[0] is history[1]:
        raise CheckFailed(
            f"after two epochs the history is {history}",
            "Both lines are one and the same dict, filled in twice: each epoch needs a new one.",
        )
    what = "w = 1, halved by each of the two steps of an epoch:\nthe {} of epoch {}"
    for line, epoch, loss in zip(history, (1, 2), (0.625, 0.625 / 16)):
        check_number(line["loss"], loss, what.format("loss", epoch), probe=which_history)
        if line["epoch"] != epoch:
            raise CheckFailed(
                f'"epoch" in line {epoch} of the history is {line["epoch"]!r}, expected {epoch}',
                "The epochs count from 1." if line["epoch"] == epoch - 1 else None,
            )
    check_close(model.w.data, np.array([1 / 16]), "after four steps, w", probe=which_history)
    more = lines_of(fit(model, mse_loss, optimizer, loader, 1), 1, {"epoch", "loss"})[0]
    what = "another epoch after those two, in a call of its own:\nthe {} in its line"
    check_number(more["loss"], 0.625 / 256, what.format("loss"), probe=which_history)
    check_close(more["epoch"], 1, what.format("epoch"), probe=lambda: "Every call of fit counts its epochs from 1.")


@pytest.mark.task("08.5")
def test_the_held_out_examples_are_looked_at_after_the_steps_of_an_epoch():
    model, optimizer = scale(1.0, lr=0.25)
    fours = DataLoader(np.array([[4.0]]), np.array([[1.0]]), 1)
    returned = fit(model, mse_loss, optimizer, ones(2, 0.0), 2, held_out=fours)
    history = lines_of(returned, 2, {"epoch", "loss", "held_out_loss", "held_out_accuracy"})
    what = "w = 1/4 after epoch 1 and 1/16 after epoch 2, held out is (4w - 1)²:\nthe held_out_loss of epoch {}"
    for line, epoch, loss in zip(history, (1, 2), (0.0, 0.5625)):
        check_number(line["held_out_loss"], loss, what.format(epoch), probe=which_held_out)
        check_number(line["held_out_accuracy"], 1.0, f"the held_out_accuracy of epoch {epoch}", probe=which_held_out)


@pytest.mark.task("08.5")
def test_the_model_trains_in_train_mode_and_only_then():
    model = Watcher().eval()
    held_out = loader_of([2.0], [1], 1)
    fit(model, hinge_loss, Plain([model.w], lr=0.0), loader_of([0.5, 0.5], [1, 1], 1), 2, held_out=held_out)
    found = ["train" if outside and inside else "eval" for outside, inside in model.modes]
    wanted = ["train", "train", "eval"] * 2
    if found != wanted:
        raise CheckFailed(
            f"two epochs of two batches and a look at one held out: the modes are {found}, expected {wanted}",
            "The model came in eval mode and stayed there: who trains has to say so."
            if set(found) == {"eval"} and len(found) == len(wanted)
            else "After the first look at the held-out examples it stays in eval mode: every epoch begins with train()."
            if found == ["train", "train", *["eval"] * 4]
            else ask(learned_from_held_out),
        )


@pytest.mark.task("08.5")
def test_training_ends_when_the_held_out_loss_has_not_fallen_for_long_enough():
    """Best in epoch 2, nothing better in epochs 3 and 4: with patience 2 that is the end."""
    table = [4.0, 3.0, 5.0, 6.0, 7.0, 8.0]
    check_epochs(table, 2, 4)


@pytest.mark.task("08.5")
def test_a_new_best_starts_the_patience_afresh():
    """Better in epochs 2 and 4. After that 3.2 and 3.1 are less than 3.5, but not less than the best, 3."""
    check_epochs([5.0, 4.0, 4.5, 3.0, 3.5, 3.2, 3.1, 1.0], 2, 6)
    check_epochs([2.0, 2.0, 2.0, 2.0, 2.0], 2, 3)


@pytest.mark.task("08.5")
def test_the_parameters_of_the_best_epoch_are_put_back():
    """w counts the epochs. The best was epoch 2, whether training stopped early or came to its end."""
    for table, patience, how in (([4.0, 3.0, 5.0, 6.0, 7.0], 2, "stopped early"), ([4.0, 3.0, 5.0], 3, "at its end")):
        _, w = stopped(table, patience)
        what = f"held-out losses {show(table)}, patience {patience}, {how}:\nafter fit, the epoch of the parameters"
        check_number(w, 2.0, what, probe=which_parameters)


@pytest.mark.task("08.5")
def test_without_patience_the_last_parameters_stay():
    lines, w = stopped([4.0, 3.0, 5.0, 6.0], None)
    what = "held-out losses 4, 3, 5 and 6, no patience:\n"
    if lines != 4:
        raise CheckFailed(f"{what}fit ends after {lines} epochs, expected 4", "Only `patience` may end it early.")
    check_number(w, 4.0, f"{what}after fit, the epoch of the parameters", probe=put_back_unasked)


@pytest.mark.task("08.5")
def test_a_history_of_numbers_keeps_no_graph_alive():
    (loss, watch), model = watched(mse_loss), Counting()
    optimizer = Plain([model.w], 0.25)
    history = lines_of(fit(model, loss, optimizer, ones(6, 0.0), 2, held_out=ones(2, 1.0)), 2, {"epoch", "loss"})
    for line in history:
        for name, value in line.items():
            if name != "epoch":
                check_plain(value, f'"{name}" in the history')
    check_gone(watch, "after fit, while its history is kept")
    model.check_alive("fit")


# The harder suite: python grader.py 08 --goal


@pytest.mark.goal
@pytest.mark.task("08.1")
def test_goal_batches_of_every_size_hold_every_example_once():
    for n, size, shape in ((1, 1, ()), (1, 5, (2,)), (5, 5, (3,)), (7, 1, ()), (12, 5, (2, 3)), (64, 63, (1,))):
        for shuffle in (False, True):
            inputs = np.arange(n * int(np.prod(shape)), dtype=np.float32).reshape(n, *shape)
            answers = np.arange(n, dtype=np.int16)
            loader = DataLoader(inputs, answers, size, shuffle=shuffle, seed=n)
            what = f"{n} examples of shape {shape} in batches of {size}"
            batches = batches_of(loader, what)
            sizes = [len(one) for one, _ in batches]
            wanted = [min(size, n - start) for start in range(0, n, size)]
            if sizes != wanted or len(loader) != len(sizes):
                raise CheckFailed(f"{what} come in {sizes}, expected {wanted}")
            rows = np.concatenate([two for _, two in batches])
            if rows.dtype != np.int16:
                raise CheckFailed(f"{what}: the answers are {rows.dtype}, expected int16")
            check_close(np.sort(rows) * 1.0, np.arange(n) * 1.0, f"{what}: the answers, sorted")
            check_close(np.concatenate([one for one, _ in batches]), inputs[rows], f"{what}: the inputs of the answers")
            if not shuffle:
                check_close(rows * 1.0, np.arange(n) * 1.0, f"{what}, not shuffled: the answers")


@pytest.mark.goal
@pytest.mark.task("08.1")
def test_goal_over_many_rounds_every_example_comes_first_now_and_then():
    inputs, answers = example_arrays(5)
    loader = DataLoader(inputs, answers, 2, seed=7)
    orders = [tuple(order_of(loader, "5 examples, shuffled")) for _ in range(200)]
    counts = np.bincount([order[0] for order in orders], minlength=5)
    if counts.min() < 15:
        raise CheckFailed(f"in 200 rounds of 5 examples, each of them comes first {counts.tolist()} times")
    if len(set(orders)) < 60:
        raise CheckFailed(f"200 shuffled rounds of 5 examples have {len(set(orders))} different orders out of 120")


@pytest.mark.goal
@pytest.mark.task("08.2")
def test_goal_steps_in_both_precisions_match_gradients_by_hand():
    rng = np.random.default_rng(2)
    for dtype, tolerance in ((np.float64, 1e-9), (np.float32, 1e-4)):
        for n, k in ((1, 1), (5, 3), (8, 1)):
            inputs, answers = (rng.standard_normal((n, size)).astype(dtype) for size in (k, 1))
            model = Linear(k, 1, dtype=dtype, rng=np.random.default_rng(n))
            optimizer = Plain(model.parameters(), lr=0.125)
            weight, bias = model.weight.data.copy(), model.bias.data.copy()
            for step in range(3):
                difference = inputs @ weight + bias - answers
                value = train_step(model, mse_loss, optimizer, inputs, answers)
                what = f"a linear layer on {n} examples of {k} numbers in {np.dtype(dtype)}, step {step + 1}"
                check_plain(value, f"{what}: the loss")
                check_close(float(value), float((difference**2).mean()), f"{what}: the loss", tolerance)
                weight -= dtype(0.125) * (2.0 / n * inputs.T @ difference).astype(dtype)
                bias -= dtype(0.125) * (2.0 * difference.mean(axis=0)).astype(dtype)
                check_close(model.weight.data, weight, f"{what}: the weights", tolerance)
                check_close(model.bias.data, bias, f"{what}: the bias", tolerance)


@pytest.mark.goal
@pytest.mark.task("08.3")
def test_goal_accuracy_matches_counting_one_by_one():
    rng = np.random.default_rng(3)
    for n in (1, 2, 9):
        for classes in (2, 3, 10):
            scores, labels = rng.standard_normal((n, classes)), rng.integers(0, classes, n)
            right = sum(max(range(classes), key=lambda c, s=row: s[c]) == label for row, label in zip(scores, labels))
            for given in (scores, Tensor(scores), scores.astype(np.float32), 1e300 * scores):
                check_number(accuracy(given, labels), right / n, f"the accuracy of {n} rows of {classes} scores")
        for shape in ((n,), (n, 1)):
            for other in ((n,), (n, 1)):
                scores, labels = rng.standard_normal(shape), rng.choice([-1, 1], other)
                right = sum((s > 0) == (y > 0) for s, y in zip(scores.ravel(), labels.ravel()))
                what = f"the accuracy of scores of shape {shape} and labels of shape {other}"
                for kind in (labels, labels * 1.0):
                    check_number(accuracy(Tensor(scores), kind), right / n, what)


@pytest.mark.goal
@pytest.mark.task("08.4")
def test_goal_the_size_of_the_batches_makes_no_difference():
    rng = np.random.default_rng(4)
    inputs, labels = rng.standard_normal((23, 4)), rng.integers(0, 3, 23)
    model = Sequential(Linear(4, 3, rng=rng), Dropout(0.9, rng=rng))
    scores = inputs @ model.children()["0"].weight.data
    shifted = scores - scores.max(axis=1, keepdims=True)
    losses = np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(23), labels]
    share = float((scores.argmax(axis=1) == labels).mean())
    for size in (1, 2, 5, 22, 23, 100):
        result = pair_of(evaluate(model, cross_entropy, DataLoader(inputs, labels, size)))
        what = f"23 examples in batches of {size}, a Dropout in the model: the"
        check_number(result[0], float(losses.mean()), f"{what} mean loss", probe=which_mean)
        check_number(result[1], share, f"{what} accuracy", probe=which_mean)


@pytest.mark.goal
@pytest.mark.task("08.5")
def test_goal_early_stopping_is_right_on_a_hundred_random_courses():
    rng = np.random.default_rng(5)
    for _ in range(100):
        table = rng.integers(1, 6, rng.integers(1, 9)).astype(float).tolist()
        patience = int(rng.integers(1, 4))
        best, wanted = 0, len(table)
        for epoch, loss in enumerate(table):
            if loss < table[best]:
                best = epoch
            if epoch - best >= patience:
                wanted = epoch + 1
                break
        check_epochs(table, patience, wanted)
        what = f"held-out losses {show(table)}, patience {patience}:\nafter fit, the epoch of the parameters"
        check_number(stopped(table, patience)[1], best + 1.0, what, probe=which_parameters)


@pytest.mark.goal
@pytest.mark.task("08.5")
def test_goal_the_digits_are_read_from_two_other_starts():
    for seed in (1, 2):
        share = digits_read(seed)
        if share < 0.97:
            raise CheckFailed(f"with seed {seed}, {share:.1%} of the held-out digits are read, expected at least 97 %")


@pytest.mark.goal
@pytest.mark.task("08.5")
def test_goal_the_same_seeds_give_the_same_history():
    histories = []
    for _ in range(2):
        rng = np.random.default_rng(6)
        model = Sequential(Linear(2, 8, rng=rng), ReLU(), Dropout(0.5, rng=rng), Linear(8, 1, rng=rng))
        points, labels = make_moons(30, seed=6)
        loader = DataLoader(points, labels.reshape(-1, 1), 8, seed=6)
        histories.append(fit(model, hinge_loss, Adam(model.parameters(), lr=0.01), loader, 3, held_out=loader))
    if histories[0] != histories[1]:
        raise CheckFailed("the same model, loader and seeds give two different histories")


# What the checks are made of.


class Plain(Optimizer):
    """Gradient descent, written out: what is checked here is the loop around it."""

    def update(self, parameter, state):
        parameter.data = parameter.data - parameter.dtype.type(self.lr) * parameter.grad


class Scale(Module):
    """The input times a single weight w."""

    def __init__(self, w: float):
        self.w = Tensor([w])

    def forward(self, x):
        return x * self.w


class Watcher(Module):
    """Passes its input on, and takes down in which mode it and the module inside it are at each call."""

    def __init__(self):
        self.w = Tensor([1.0])
        self.inside = ReLU()
        self.modes = []

    def forward(self, x):
        self.modes.append((self.training, self.inside.training))
        return x * self.w


class Counting(Module):
    """Passes its input on, and takes down at each call how many graphs of earlier calls are still alive."""

    def __init__(self):
        self.w = Tensor([1.0])
        self.watch, self.alive = [], []

    def forward(self, x):
        if self.living() > 2:
            gc.collect()  # as in check_gone
        self.alive.append(self.living())
        inside = x * self.w
        self.watch.append(weakref.ref(inside))
        return inside * 1.0

    def living(self) -> int:
        return sum(one() is not None for one in self.watch)

    def check_alive(self, during: str) -> None:
        """The names in a loop may hold on to the last batch. More than that are kept by something."""
        if max(self.alive) > 2:
            raise CheckFailed(
                f"during {during}, when the model is called for the {len(self.alive)}th time, {self.alive[-1]} graphs "
                "of earlier batches are still in memory",
                "A Tensor holds the graph that it was computed from, and a sum of Tensors those of all batches: "
                "add up plain numbers, .item().",
            )


SCALED = "outputs w * x for x = 1 and 3 at w = 1, answers 0, mse_loss, learning rate 0.05"
ONE_AND_THREE = (np.array([[1.0], [3.0]]), np.zeros((2, 1)))


def scale(w: float, lr: float):
    model = Scale(w)
    return model, Plain([model.w], lr)


def pass_on() -> Scale:
    """A model whose outputs are its inputs."""
    return Scale(1.0)


def network(*widths: int, seed: int) -> Sequential:
    """Linear layers of these widths, a relu between any two."""
    rng = np.random.default_rng(seed)
    modules = []
    for n_inputs, n_outputs in itertools.pairwise(widths):
        modules += [Linear(n_inputs, n_outputs, rng=rng), ReLU()]
    return Sequential(*modules[:-1])


def example_arrays(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs 0, 1, 2 ... of shape (n, 1) and their answers 0, 10, 20 ... of shape (n,)."""
    return np.arange(n, dtype=np.float64).reshape(n, 1), 10 * np.arange(n)


def loader_of(scores: list, labels: list, batch_size: int) -> DataLoader:
    return DataLoader(np.array(scores).reshape(-1, 1), np.array(labels).reshape(-1, 1), batch_size, shuffle=False)


def ones(n: int, answer: float) -> DataLoader:
    """The input 1 n times, each a batch of its own."""
    return DataLoader(np.ones((n, 1)), np.full((n, 1), answer), 1)


def show(table: list) -> str:
    return ", ".join(f"{loss:g}" for loss in table)


def batches_of(loader: DataLoader, what: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """The batches of a round, each a pair of arrays."""
    round_of = loader.__iter__()
    if round_of is None:
        raise CheckFailed(f"{what}: iterating gives None", "Nothing comes out: is there a yield?")
    if not hasattr(round_of, "__next__"):
        why = "With return everything comes out once, at the end: yield hands out one batch after the other."
        raise CheckFailed(f"{what}: iterating gives a {type(round_of).__name__}, not one batch after another", why)
    batches = []
    for batch in drawn_from(round_of):
        if not isinstance(batch, tuple | list) or len(batch) != 2:
            raise CheckFailed(f"{what}: a batch is a {type(batch).__name__}, expected a pair (inputs, answers)")
        for part in batch:
            if not isinstance(part, np.ndarray):
                why = "A model and a loss take arrays: hand them on as they are."
                raise CheckFailed(f"{what}: a batch holds a {type(part).__name__}, expected an array", why)
        batches.append(tuple(batch))
        if len(batches) > 1000:
            raise CheckFailed(f"{what}: there are more than 1000 batches", "Does the round ever end?")
    if not batches:
        raise CheckFailed(f"{what}: there is no batch at all")
    return batches


def drawn_from(batches):
    """One batch after the other. If that fails, the error may tell why."""
    try:
        yield from batches
    except NotImplementedError:
        raise
    except Exception as error:
        error.diagnosis = ask(order_is_none)
        raise


def order_of(loader: DataLoader, what: str) -> list[int]:
    return [int(number) for one, _ in batches_of(loader, what) for number in one[:, 0]]


def check_plain(value, what: str) -> None:
    """A number that holds on to nothing: a float."""
    if value is None:
        raise CheckFailed(f"{what} is None, expected a number", "Nothing comes back: is there a return?")
    if isinstance(value, Tensor):
        why = "A Tensor holds on to the whole graph it was computed from, as long as it is kept: .item() gives a float."
        raise CheckFailed(f"{what} is a Tensor, expected a float", why)
    if isinstance(value, np.ndarray):
        raise CheckFailed(f"{what} is an array of shape {value.shape}, expected a float", "float(...) makes it one.")


def check_number(actual, expected: float, what: str, probe=None) -> None:
    check_plain(actual, what)
    check_close(actual, float(expected), what, probe=probe)


def step_of(*given):
    """What train_step returns. It moves the parameters, and the examples and the learning rate stay as they are."""
    model, _, optimizer, inputs, answers = given
    names, lr = sorted(model.state_dict()), optimizer.lr
    try:
        with nothing_else_changes("train_step", inputs=inputs, answers=answers):
            value = explained(lambda: train_step(*given), given_the_wrong_way_round, never_called)
    except AttributeError as error:
        if error.name == "backward" and not callable(error.obj):
            error.diagnosis = "The loss has become a plain number too early: only the Tensor knows the way back."
        raise
    message = None
    if optimizer.lr != lr:
        message = f"after train_step the learning rate is {optimizer.lr}, and was {lr} before"
    if sorted(model.state_dict()) != names:
        message = f"after train_step the model's parameters are {sorted(model.state_dict())}, and were {names} before"
    if message:
        raise CheckFailed(message, "A step moves the parameters, and all else stays as it is.")
    if value is None:
        why = "Nothing comes back: is there a return? What backward() and step() return is nothing, too."
        raise CheckFailed("train_step returns None, expected a number", why)
    return value


def check_share(scores, labels, expected: float, what: str, probe) -> None:
    """The accuracy, twice the same, and neither scores nor labels are changed."""
    with nothing_else_changes("accuracy", scores=scores, labels=labels):
        check_plain(explained(lambda: accuracy(scores, labels), first_that_tells(over_the_wrong_axis, probe)), what)
        check_twice(lambda: accuracy(scores, labels), float(expected), what, probe)


def pair_of(result) -> tuple:
    if result is None:
        raise CheckFailed("evaluate returns None, expected a pair (loss, accuracy)", "Is there a return?")
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise CheckFailed(f"evaluate returns a {type(result).__name__}, expected a pair (loss, accuracy)")
    return tuple(result)


def lines_of(history, count: int, names: set) -> list[dict]:
    """What fit returns, which has to be a list of `count` lines with these names in each."""
    if history is None:
        raise CheckFailed("fit returns None, expected the history", "Is there a return?")
    if not isinstance(history, list) or not all(isinstance(line, dict) for line in history):
        raise CheckFailed(f"fit returns {str(history)[:60]}, expected a list of dicts")
    if len(history) != count:
        found = f"after {count} epochs the history has {len(history)} lines, expected {count}"
        raise CheckFailed(found, ask(which_lines))
    for line in history:
        missing = sorted(names - set(line))
        if missing:
            raise CheckFailed(f"a line of the history has {sorted(line)}: {', '.join(missing)} is missing")
    return history


def watched(loss) -> tuple:
    """The same loss, and a list that tells whether its results are still there."""
    watch = []

    def watching(scores, answers):
        value = loss(scores, answers)
        watch.append(weakref.ref(value))
        return value

    return watching, watch


def check_gone(watch: list, when: str) -> None:
    gc.collect()  # a backward() that defines a function `visit` leaves a cycle: that is not what is meant here
    alive = sum(one() is not None for one in watch)
    if not watch:
        raise CheckFailed(f"{when}: the loss was never called")
    if alive:
        raise CheckFailed(
            f"{when}, {alive} of {len(watch)} losses are still in memory, each with its whole graph",
            "Something keeps the Tensors: keep the number, .item(), and let them go.",
        )


def digits_read(seed: int) -> float:
    """Train on 1,400 digits. Returns the share of the other 397 that are read correctly.

    All matrices are small enough for one thread of NumPy: on a busy machine two that wait for each other take long.
    """
    images, labels = load_digits()
    order = np.random.default_rng(0).permutation(len(images))
    images, labels = images[order], labels[order]
    model = network(64, 64, 10, seed=seed)
    loader = DataLoader(images[:1400], labels[:1400], 32, seed=seed)
    count = sum(1 for _ in DataLoader(images[:1400], labels[:1400], 32))
    if count != 44:
        raise CheckFailed(f"1400 digits in batches of 32 are 44 batches, and the loader gives {count}")
    fit(model, cross_entropy, Adam(model.parameters(), lr=5e-3), loader, 20)
    return float((model(images[1400:]).data.argmax(axis=1) == labels[1400:]).mean())


def course(table: list, patience: int | None) -> tuple:
    """Run fit where the held-out loss of each epoch is prescribed. Returns the history, the optimizer and the last w.

    Every epoch takes one step, which adds 1 to w, so w tells after which epoch the parameters were these.
    """
    model, optimizer = scale(0.0, lr=1.0)

    def loss(scores, answers):
        if answers[0, 0] > 0:
            return mean(-scores)  # its gradient is -1: w grows by 1
        return as_tensor(table[round(float(scores.data[0, 0])) - 1])

    held_out = DataLoader(np.ones((1, 1)), np.full((1, 1), -1.0), 1)
    history = fit(model, loss, optimizer, ones(1, 1.0), len(table), held_out=held_out, patience=patience)
    if history is None:
        raise CheckFailed("fit returns None, expected the history", "Is there a return?")
    return history, optimizer, float(model.w.data[0])


def stopped(table: list, patience: int | None) -> tuple[int, float]:
    """How many epochs are there, and after which of them were the parameters those that are left?"""
    history, _, w = course(table, patience)
    return len(history), w


def check_epochs(table: list, patience: int, wanted: int) -> None:
    history, optimizer, _ = course(table, patience)
    found, what = len(history), f"held-out losses {show(table)}, patience {patience}:\n"
    if optimizer.steps == found + 1 == wanted:
        cause = "The epoch in which training ends has a line as well: append it before the break."
        raise CheckFailed(f"{what}training ends after epoch {wanted}, and the history has {found} lines", cause)
    if found != wanted:
        raise CheckFailed(f"{what}training ends after epoch {found}, expected {wanted}", ask(which_stop))


# The second look: taken only where a check has failed, at other numbers, to tell its cause from the others.


def shuffled_unasked() -> str | None:
    order = order_of(DataLoader(*example_arrays(40), 10, shuffle=False), "40 examples")
    if sorted(order) == list(range(40)) and order != sorted(order):
        return "They come shuffled, though self.shuffle is False: then the order is the one of the arrays."
    return None


def order_is_none() -> str | None:
    """Would it be right if rng.shuffle gave its array back?"""

    class Generous:
        def shuffle(self, numbers, *_, **__):
            return numbers

    loader = DataLoader(*example_arrays(6), 4)
    loader.rng = Generous()
    if [one[:, 0].tolist() for one, _ in loader] == [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0]]:
        return "rng.shuffle changes its array in place and gives back None. rng.permutation(n) gives a new order."
    return None


def given_the_wrong_way_round() -> str | None:
    """What do the model and the loss get to see?"""
    seen = {}

    class Noting(Scale):
        def forward(self, x):
            seen["x"] = x.data
            return super().forward(x)

    def noting(scores, answers):
        seen["loss"] = scores, answers
        return mse_loss(as_tensor(scores), answers)

    model = Noting(1.0)
    with contextlib.suppress(Exception):
        train_step(model, noting, Plain([model.w], 0.0), *ONE_AND_THREE)
    scores, answers = seen.get("loss", (None, None))
    if isinstance(answers, Tensor) and not isinstance(scores, Tensor):
        return "The loss gets the answers first and the model's outputs second: it takes them the other way round."
    if np.array_equal(seen.get("x"), ONE_AND_THREE[1]):
        return "The model is given the answers. It has to find them from the inputs."
    return None


def never_called() -> str | None:
    called = []

    class Noting(Scale):
        def forward(self, x):
            called.append(x)
            return super().forward(x)

    model = Noting(1.0)
    with contextlib.suppress(Exception):
        train_step(model, mse_loss, Plain([model.w], 0.0), *ONE_AND_THREE)
    return None if called else "The model is never called: the loss is one of model(inputs), not of the inputs."


def calls_of_a_step() -> list[str]:
    """What a call of train_step does to its parameter, in order."""
    calls = []
    real = {name: getattr(Tensor, name) for name in ("backward", "zero_grad")}

    class Spy(Plain):
        def update(self, parameter, state):
            calls.append("step")
            super().update(parameter, state)

    def noting(name):
        def note(*given, **named):
            calls.append(name)
            return real[name](*given, **named)

        return note

    model = Scale(2.0)
    try:
        for name in real:
            setattr(Tensor, name, noting(name))
        train_step(model, mse_loss, Spy([model.w], 0.5), *ONE_AND_THREE)
    finally:
        for name, function in real.items():
            setattr(Tensor, name, function)
    return calls


def why_a_step_is_wrong() -> str | None:
    if wrong_way := given_the_wrong_way_round():
        return wrong_way
    calls = calls_of_a_step()
    if "backward" not in calls:
        return "backward() is never called, so there are no gradients to follow."
    if "step" not in calls:
        return "The optimizer never takes a step: the gradients are there, and nothing moves."
    backward, step = calls.index("backward"), calls.index("step")
    if step < backward:
        return "The step comes before backward(): it follows the gradients of an earlier batch."
    if calls.count("step") > 1:
        return "The optimizer takes more than one step for a batch."
    if calls.count("backward") > 1:
        return "backward() is called more than once for a batch, and the gradients add up."
    if "zero_grad" not in calls:
        return "Nothing sets the gradients to zero: those of earlier batches are still there, and add up."
    zero = calls.index("zero_grad")
    if backward < zero < step:
        return "The gradients are set to zero between backward() and the step, which then has nothing to follow."
    if zero > step:
        return "The gradients are set to zero after the step only: what was in them before this batch still counts."
    return None


def loss_of_a_step() -> float:
    """On other numbers: at w = 1.5 the loss is 11.25, and with learning rate 0.05 a step leads to w = 0.75."""
    model, optimizer = scale(1.5, lr=0.05)
    return float(train_step(model, mse_loss, optimizer, *ONE_AND_THREE))


which_loss = first_that_tells(
    why_a_step_is_wrong,
    which_formula(
        loss_of_a_step,
        {
            "This is the loss after the step. The one from before it is asked for: it is known already.": 2.8125,
            "This is the loss of all examples together, times their number: the loss is a mean already.": 22.5,
            "This is the loss divided by the number of examples: the loss is a mean already.": 5.625,
            "The loss becomes a whole number: .item() gives all of it.": 11.0,
        },
    ),
)

THREE = np.array([[3.0, 2.0, 1.0], [1.0, 2.0, 4.0], [-3.0, -1.0, -2.0], [1.0, 4.0, 2.0], [5.0, 0.0, 1.0]])
LABELS = np.array([0, 1, 1, 1, 1])  # right, wrong, right, right, wrong: 3 of 5
which_accuracy = first_that_tells(
    which_formula(
        lambda: [accuracy(THREE, LABELS), accuracy(np.zeros((3, 2)), np.array([0, 1, 1]))],
        {
            "It counts the right answers. Their share is asked for.": [3.0, 1.0],
            "It is a percentage. A share goes from 0 to 1.": [60.0, 100.0 / 3.0],
            "It is the share of the wrong answers.": [0.4, 2.0 / 3.0],
            "It divides by the number of scores: each row is one answer.": [0.2, 1.0 / 6.0],
            "Where two scores are equally high, both count as the answer: a network that says nothing is always "
            "right. Only one class can be the answer.": [0.6, 1.0],
        },
    ),
    which_formula(
        lambda: [accuracy(THREE, LABELS), accuracy(np.array([[1.0, 0.5], [1.0, 0.0]]), np.array([1, 1]))],
        {
            "The highest score itself is compared with the label: its place in the row, argmax, is the class.": [
                0.0,
                1.0,
            ],
        },
    ),
    which_formula(
        lambda: [accuracy(THREE, LABELS), accuracy(np.diag([1.0, 2.0]), np.array([0, 1]))],
        {
            "It takes the lowest score of each row: the highest is the answer.": [0.2, 0.0],
            "It takes the highest score of the whole table: every row has an answer of its own.": [0.0, 0.0],
            "Every share below 1 has become 0: does // stand where / belongs?": [0.0, 1.0],
        },
    ),
    lambda: over_the_wrong_axis(),
)


def over_the_wrong_axis() -> str | None:
    """A square table fits either way. Its rows say class 1, 1, 1, its columns 2, 0, 1."""
    square = np.array([[0.0, 9.0, 0.0], [0.0, 5.0, 3.0], [4.0, 6.0, 1.0]])
    rows, columns = square.argmax(axis=1), square.argmax(axis=0)
    if accuracy(square, columns) == 1.0 and accuracy(square, rows) < 1.0:
        return "The highest score is looked for in each column. An example is a row."
    return None


SCORES = np.array([1.5, 0.5, -2.0, -1.0, -0.3])
SIGNS = np.array([1, 1, -1, -1, 1])  # all right but the last: 4 of 5
which_sign = first_that_tells(
    which_formula(
        lambda: [accuracy(SCORES, SIGNS), accuracy(SCORES.reshape(5, 1), SIGNS)],
        {
            "Scores of shape (n, 1) and labels of shape (n,) are compared each with each: bring both to one shape.": [
                0.8,
                float(((SCORES.reshape(5, 1) > 0) == (SIGNS > 0)).mean()),
            ],
            "The labels are 1 and -1, and it compares them with True and False, which are 1 and 0.": [0.4, 0.4],
            "It counts the right answers. Their share is asked for.": [4.0, 4.0],
            "It is a percentage. A share goes from 0 to 1.": [80.0, 80.0],
            "It is the share of the wrong answers.": [0.2, 0.2],
        },
    ),
    which_formula(
        lambda: [accuracy(SCORES.reshape(5, 1), SIGNS.reshape(5, 1))],
        {
            "A column of scores is taken for classes: with one score the sign is the answer.": [0.0],
            "The labels are 1 and -1, and it compares them with True and False, which are 1 and 0.": [0.4],
        },
    ),
)


which_zero = which_formula(
    lambda: [
        accuracy(np.array([score]), np.array([label])) for label in (1, 0, -1) for score in (0.4, -0.4)
    ],  # should be 1, 0, 0, 1, 0, 1
    {
        "With labels 1 and 0 nothing is right where the label is 0: it stands for a no, as -1 does. Ask whether the "
        "label is above 0.": [1.0, 0.0, 0.0, 0.0, 0.0, 1.0],
        "With labels 1 and 0 everything is right where the label is 0: it stands for a no, as -1 does. Ask whether the "
        "label is above 0.": [1.0, 0.0, 1.0, 1.0, 0.0, 1.0],
        "With labels 1 and 0 a 0 counts for a yes: it stands for a no, as -1 does. Ask whether the label is above 0.": [
            1.0,
            0.0,
            1.0,
            0.0,
            0.0,
            1.0,
        ],
    },
)


def half_as_threshold():
    """A score of 0.4 is above 0 and below a half."""
    if [accuracy(np.array([score]), np.array([1])) for score in (-0.4, 0.4, 0.6)] == [0.0, 0.0, 1.0]:
        return "A score of 0.6 counts as a yes and 0.4 does not: a score is no probability, its sign decides."
    return None


# Hinge losses 0, 0 | 0.5, 3 | 0.25, in batches of two: 0.75 in the mean, and 4 of 5 right.
MIXED = ([1.0, 3.0, 0.5, -2.0, 0.75], [1, 1, 1, 1, 1], 2)


def counted_from_one() -> str | None:
    """Full batches alone, losses 0 and 2."""
    found = pair_of(evaluate(pass_on(), hinge_loss, loader_of([1.0, -1.0], [1, 1], 1)))
    if np.allclose(found, (2.0 / 3.0, 1.0 / 3.0)):
        return "It divides by one example more than there are: the count begins with 0."
    return None


which_mean = first_that_tells(
    counted_from_one,
    which_formula(
        lambda: [float(one) for one in pair_of(evaluate(pass_on(), hinge_loss, loader_of(*MIXED)))],
        {
            "This is the mean of the batches' means: an example in a short batch counts more than the others.": [
                2.0 / 3.0,
                2.5 / 3.0,
            ],
            "The loss is the mean of the batches' means: an example in a short batch counts more than the others.": [
                2.0 / 3.0,
                0.8,
            ],
            "The accuracy is the mean of the batches' accuracies: an example in a short batch counts more.": [
                0.75,
                2.5 / 3.0,
            ],
            "The batches' means are summed up and not divided.": [2.0, 2.5],
            "The batches' means are summed up as if each were a single example: how many are in a batch?": [0.4, 0.5],
            "A batch's loss counts as if it were that of a single example: how many are in a batch?": [0.4, 0.8],
            "A batch's accuracy counts as if it were that of a single example: how many are in a batch?": [0.75, 0.5],
            "All losses are summed up and not divided by their number.": [3.75, 4.0],
            "The sums are divided by the number of batches, not of examples.": [1.25, 4.0 / 3.0],
            "Every batch counts as a full one: the last may hold fewer examples, len(inputs) of them.": [0.8, 1.0],
            "It divides by the examples of full batches: the last may hold fewer, len(inputs) of them.": [
                0.625,
                4.0 / 6.0,
            ],
            "Only the last batch counts.": [0.25, 1.0],
            "Only the last batch's losses count: += adds to those before.": [0.05, 0.8],
            "Only the last batch's right answers count: += adds to those before.": [0.75, 0.2],
            "Only the first batch counts: the loop is left too early.": [0.0, 1.0],
            "The accuracy of a batch becomes a whole number: only a batch that is all right counts.": [0.75, 0.6],
            "The means become whole numbers: does // stand where / belongs?": [0.0, 0.0],
            "The loss comes first, the accuracy second.": [0.8, 0.75],
        },
    ),
)


def which_lines() -> str | None:
    """Four epochs of three batches: how many lines are there, and how many steps?"""
    model, optimizer = scale(2.0, lr=0.25)
    lines = len(fit(model, mse_loss, optimizer, ones(3, 0.0), 4))
    return {
        (1, 1): "It ends after the first batch: is the return inside the loop?",
        (1, 3): "It ends after the first epoch: is the return inside the loop?",
        (1, 12): "All epochs are trained, and only one has a line: does append belong further in?",
        (0, 12): "All epochs are trained, and none has a line in the history: append it.",
        (0, 0): "The loop over the epochs never runs.",
        (3, 9): "The last epoch is missing: a range leaves out its end.",
        (5, 15): "There is an epoch too many: range(epochs + 1) begins with 0.",
        (12, 12): "Every batch has a line: append once in an epoch, behind the loop over its batches.",
    }.get((lines, optimizer.steps))


def course_of(epochs: int) -> list[float]:
    """On other numbers: w = 2, three batches in an epoch, each halving w. The losses and w in the end."""
    model, optimizer = scale(2.0, lr=0.25)
    history = fit(model, mse_loss, optimizer, ones(3, 0.0), epochs)
    return [*(float(line["loss"]) for line in history), float(model.w.data[0])]


which_history = which_formula(
    lambda: course_of(2),
    {
        "The loss of an epoch is the one of its last batch: the mean of all of them is asked for.": [
            0.25,
            0.25 / 64,
            1 / 32,
        ],
        "The loss of an epoch is the one of its first batch: the mean of all of them is asked for.": [
            4.0,
            4 / 64,
            1 / 32,
        ],
        "The losses of an epoch are summed up and not divided by their number.": [5.25, 5.25 / 64, 1 / 32],
        "The losses of earlier epochs are still in the list: each epoch begins with an empty one.": [
            1.75,
            (5.25 + 5.25 / 64) / 6,
            1 / 32,
        ],
        "An epoch takes only one batch: it is a round through all of them.": [4.0, 1.0, 0.5],
        "The parameters from before the training are put back: without patience nothing is.": [1.75, 1.75 / 64, 2.0],
    },
)


def held_out_course() -> list[float]:
    """w = 2 and three batches: 1/4 after epoch 1 and 1/32 after epoch 2. Held out is the loss w²."""
    model, optimizer = scale(2.0, lr=0.25)
    one = DataLoader(np.array([[1.0]]), np.array([[0.0]]), 1)
    history = fit(model, mse_loss, optimizer, ones(3, 0.0), 2, held_out=one)
    return [float(line["held_out_loss"]) for line in history]


which_held_out = first_that_tells(
    which_formula(
        held_out_course,
        {
            "The held-out examples are looked at before the steps of the epoch.": [4.0, 1 / 16],
            "held_out_loss is the loss of the training examples.": [1.75, 1.75 / 64],
            "held_out_loss and held_out_accuracy have changed places.": [0.0, 0.0],
        },
    ),
    lambda: learned_from_held_out(),
)


def learned_from_held_out() -> str | None:
    model, optimizer = scale(2.0, lr=0.25)
    fit(model, mse_loss, optimizer, ones(1, 0.0), 1, held_out=ones(1, 0.0))
    if float(model.w.data[0]) == 0.5:
        return "It learns from the held-out examples too. Then they tell nothing any more about what is new."
    return None


def training_loss_watched() -> str | None:
    """The held-out loss falls in every epoch: there is no reason to stop, whether the training loss falls or rises."""
    model, optimizer = scale(0.0, lr=1.0)
    epochs = itertools.count()

    def loss(scores, answers):
        if answers[0, 0] > 0:
            return mean(-scores) + 10.0 * next(epochs)
        return as_tensor(-float(scores.data[0, 0]))

    held_out = DataLoader(np.ones((1, 1)), np.full((1, 1), -1.0), 1)
    history = fit(model, loss, optimizer, ones(1, 1.0), 6, held_out=held_out, patience=2)
    if len(history) == 3 and stopped([9.0, 8.0, 7.0, 6.0, 5.0, 4.0], 2)[0] == 6:
        return "Patience looks at the loss of the training examples. What counts is the loss of those held out."
    return None


def batches_used_up():
    """How many batches does training see in three epochs of one batch?"""
    calls, (model, optimizer) = [], scale(0.0, lr=1.0)

    def loss(scores, answers):
        calls.append(1)
        return mean(-scores)

    fit(model, loss, optimizer, ones(1, 1.0), 3)
    if len(calls) == 1:
        return "Only the first epoch has batches: an iterator is used up after one round. Go through the loader itself."
    return None


def asked_twice():
    """How often is Best asked in three epochs?"""
    calls, before = [], Best.epochs_since
    Best.epochs_since = lambda self, loss: calls.append(1) or before(self, loss)
    try:
        stopped([9.0, 9.5, 9.6], 9)
    finally:
        Best.epochs_since = before
    if len(calls) > 3:
        return "best.epochs_since is asked more than once in an epoch, and counts an epoch each time: keep its answer."
    return None


which_stop = first_that_tells(
    batches_used_up,
    asked_twice,
    training_loss_watched,
    which_formula(
        lambda: [
            stopped(table, patience)[0]
            for table, patience in (
                ([9.0, 8.0, 8.5, 8.6, 8.7, 8.8], 2),  # 4
                ([9.0, 8.0, 8.5, 7.0, 7.5, 7.2, 7.1, 6.0], 2),  # 6
                ([7.0, 7.0, 7.0, 7.0, 7.0], 2),  # 3
                ([9.0, 8.0, 8.5, 8.6, 8.7, 8.8, 8.9], 3),  # 5
            )
        ],
        {
            "It ends one epoch too late: with patience 1, one epoch that is no better is the end.": [5, 7, 4, 6],
            "It ends one epoch too early: with patience 1, one epoch may be no better, and only then is it the end.": [
                3,
                3,
                2,
                4,
            ],
            "It never ends early.": [6, 8, 5, 7],
            "It ends at the first epoch that is no better: `patience` says how many of them are waited for.": [
                3,
                3,
                2,
                3,
            ],
            "It counts all epochs that were no better, also those before the best one: a new best starts afresh.": [
                4,
                5,
                3,
                5,
            ],
            "It compares with the epoch before, not with the best one.": [4, 8, 3, 5],
            "It compares with the epoch before, not with the best one, and an equal one is no better.": [4, 8, 5, 5],
            "An epoch that is only as good as the best counts as better.": [4, 6, 5, 5],
            "It watches the accuracy: the held-out loss decides.": [3, 3, 3, 4],
        },
    ),
)
which_parameters = first_that_tells(
    which_formula(
        lambda: [
            stopped([9.0, 8.0, 7.0, 8.0, 9.0], 1)[1],  # 3
            stopped([9.0, 8.0, 7.0, 7.5], 5)[1],  # 3
            stopped([4.0, 5.0, 3.0], 5)[1],  # 3
        ],
        {
            "These are the parameters of the last epoch: the best ones were not put back.": [4.0, 4.0, 3.0],
            "The best parameters are put back only if training stops early: they are the best at its end as well.": [
                3.0,
                4.0,
                3.0,
            ],
            "The best parameters are put back only if training does not stop early.": [4.0, 3.0, 3.0],
            "The best parameters are put back in every epoch: training goes on from where it is, and only its end is "
            "at the best.": [4.0, 3.0, 1.0],
            "The best parameters are put back within the training: it goes on from where it is, and only its end is "
            "at the best.": [3.0, 3.0, 1.0],
            "These are the parameters from before the training.": [0.0, 0.0, 0.0],
            "These are the parameters of the epoch before the best one.": [2.0, 2.0, 2.0],
        },
    ),
    lambda: which_stop(),
)


def put_back_unasked() -> str | None:
    if stopped([9.0, 7.0, 8.0, 8.0, 8.0], None)[1] == 2.0:
        return "The best parameters are put back though no patience was given: then the last ones stay."
    if stopped([9.0, 7.0, 8.0, 8.0, 8.0], None)[1] == 0.0:
        return "The parameters from before the training are put back: without patience nothing is."
    return None


def why_it_does_not_learn() -> str | None:
    """How many steps are there, where two epochs of three batches should be six?"""
    model, optimizer = scale(2.0, lr=0.25)
    lines = len(fit(model, mse_loss, optimizer, ones(3, 0.0), 2))
    return {
        (2, 0): "fit never takes a step.",
        (2, 2): "An epoch takes only one batch: it is a round through all of them.",
        (1, 1): "It ends after the first batch: is the return inside the loop?",
        (1, 3): "It ends after the first epoch: is the return inside the loop?",
    }.get((lines, optimizer.steps)) or which_history()
