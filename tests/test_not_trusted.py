"""What is not trusted has no interval: instead a bound is printed and written, or nothing."""

import math

import pytest
from enumeration import log_z
from evaluations import SMALL, draws
from interruptions import interrupt_call

from boltzmann_likelihood import planted
from boltzmann_likelihood.evaluation import compare, evaluate, evaluate_training
from boltzmann_likelihood.evaluation.annealing_runs import AnnealingRuns
from boltzmann_likelihood.evaluation.picture import plot, plot_training
from boltzmann_likelihood.evaluation.report import (
    as_dict,
    comparison_as_dict,
    describe,
    training_as_dict,
)
from boltzmann_likelihood.evaluation.result import Verdict
from paperlib.numerics import seeded_generator

TEST = draws(SMALL, 60, 2)
TRAIN = draws(SMALL, 200, 3)
NOTHING = [None, None]
OPTIONS = {"steps": 160, "progress": False}


@pytest.fixture(scope="module")
def other_images():
    """Training images of another kind: an average that is not trusted."""
    generator = seeded_generator(5)
    return evaluate(SMALL, TEST, 1 - TRAIN, exact=False, generator=generator, **OPTIONS)


@pytest.fixture(scope="module")
def interrupted():
    """Ended before parallel tempering: ln Z by AIS alone."""
    with pytest.MonkeyPatch.context() as patch:
        interrupt_call(patch, AnnealingRuns, "_temper", 1)
        return evaluate(SMALL, TEST, exact=False, generator=seeded_generator(5), **OPTIONS)


@pytest.fixture(params=["other_images", "interrupted"])
def evaluation(request):
    return request.getfixturevalue(request.param)


def test_the_report_has_a_bound_in_place_of_an_interval(evaluation):
    assert evaluation.word == Verdict.NOT_TRUSTED
    assert not evaluation.has_interval
    text = describe(evaluation)
    assert "95 %" not in text
    assert f"at least {evaluation.least_log_z:.2f} (99.9 %)" in text
    assert f"at most {evaluation.largest_average:.2f} (99.9 %)" in text
    assert evaluation.least_log_z <= log_z(SMALL)
    truth = (SMALL.log_unnormalized(TEST) - log_z(SMALL)).mean().item()
    assert truth <= evaluation.largest_average


def test_its_json_keeps_the_fields_without_their_values(evaluation):
    record = as_dict(evaluation)
    assert record["average"]["test"] == evaluation.average.mean
    assert record["average"]["interval_95"] == NOTHING
    assert record["average"]["interval_95_other_images"] == NOTHING
    assert record.get("ladder", {"log_z_interval_95": NOTHING})["log_z_interval_95"] == NOTHING
    assert evaluation.log_z_interval(0.95) == (-math.inf, math.inf)
    # the estimate is there, and its own error for whoever wants to know how the run went
    assert math.isfinite(evaluation.known_log_z.std_error)


def test_its_picture_has_no_interval(evaluation):
    figure = plot(evaluation)
    legends = [axes.get_legend() for axes in figure.axes]
    words = [text.get_text() for legend in legends if legend for text in legend.get_texts()]
    assert not [word for word in words if "95 %" in word]


def test_a_trusted_number_has_one():
    evaluation = evaluate(SMALL, TEST, TRAIN, exact=False, generator=seeded_generator(5), **OPTIONS)
    assert evaluation.word == Verdict.TRUSTED
    assert describe(evaluation).count("95 % interval ") == 3
    assert "nothing can be said, since 60 images are too few" in describe(evaluation)
    words = [text.get_text() for text in plot(evaluation).axes[0].get_legend().get_texts()]
    assert "parallel tempering, 95 % interval" in words


def test_an_open_number_says_what_its_interval_rests_on():
    base = planted.block_diagonal(60, 40, 8, generator=3).rbm
    model = planted.hidden_mode(base, log_odds=2, units=4, fraction=0.6, generator=2)
    generator = seeded_generator(0)
    evaluation = evaluate(model.rbm, exact=False, generator=generator, steps=400, progress=False)
    assert evaluation.word == Verdict.OPEN
    assert "95 % interval if nothing is missing" in describe(evaluation)
    assert evaluation.least_log_z <= model.log_z


BLOCKS = planted.block_diagonal(60, 40, 8, generator=1)
MODE = planted.hidden_mode(BLOCKS.rbm, log_odds=0, units=4, fraction=0.6, generator=1)
OF_BLOCKS = BLOCKS.draws(50, seeded_generator(2))


@pytest.mark.parametrize("doubtful", [0, 1])
def test_a_difference_with_it_has_none(doubtful):
    pair = [BLOCKS.rbm, BLOCKS.rbm]
    pair[doubtful] = MODE.rbm
    comparison = compare(*pair, OF_BLOCKS, generator=seeded_generator(1), steps=400, progress=False)
    words = [comparison.first.word, comparison.second.word]
    assert words[doubtful] == Verdict.NOT_TRUSTED
    assert words[1 - doubtful] == Verdict.TRUSTED
    assert comparison.difference.interval == (-math.inf, math.inf)
    text = describe(comparison)
    assert "without an interval, since a number is not trusted" in text
    assert "inf" not in text
    assert text.count("95 %") == 1
    record = comparison_as_dict(comparison)
    assert record["interval_95"] == record["interval_95_other_images"] == NOTHING


def test_checkpoints_of_a_training_have_none_either():
    options = {"generator": seeded_generator(1), "steps": 400, "progress": False}
    evaluation = evaluate_training([BLOCKS.rbm, MODE.rbm], OF_BLOCKS, **options)
    (doubtful,) = (
        number
        for number, each in enumerate(evaluation.checkpoints)
        if each.evaluation.word == Verdict.NOT_TRUSTED
    )
    assert doubtful == 1
    assert "inf" not in describe(evaluation)
    row = training_as_dict(evaluation)["checkpoints"][1]
    ends = ["low", "high", "log_z_low", "log_z_high", "behind_best_low", "behind_best_high"]
    assert [row[end] for end in ends] == [None] * 6
    assert row["average"] is not None
    plot_training(evaluation).canvas.draw()
