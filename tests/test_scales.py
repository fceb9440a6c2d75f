"""Models of all scales: what is trusted holds, and what is proven is true.

However large or small their numbers are.
"""

import math
from dataclasses import dataclass

import pytest
import torch
from enumeration import joint_log_table, log_z, random_rbm

from boltzmann_likelihood.evaluation import audit_evaluation, compare, evaluate, evaluate_training
from boltzmann_likelihood.evaluation.audit import AuditVerdict
from boltzmann_likelihood.evaluation.averages import ImageAverage
from boltzmann_likelihood.evaluation.precision import chain_dtype
from boltzmann_likelihood.evaluation.report import as_dict, describe, describe_training
from boltzmann_likelihood.evaluation.result import FinishedRuns
from boltzmann_likelihood.evaluation.verdict import doubts_above_zero
from paperlib.errors import InputError
from paperlib.estimators import exact_log_z
from paperlib.models import RBM
from paperlib.numerics import all_states, seeded_generator

WIDTH = 4
SCALES = 10.0 ** torch.arange(-3, 13).double()
STATES = all_states(WIDTH)


@dataclass(frozen=True)
class Known:
    """A model of blocks of four visible units and a hidden one, with its images and their ln p."""

    rbm: RBM
    images: torch.Tensor
    log_p: torch.Tensor
    log_z: float

    @property
    def mean(self):
        return self.log_p.mean().item()


def block_log_p(weights, visible, hidden):
    """ln p of all 16 states and ln Z of a block.

    Sums are exact and rounded once, so that nothing is lost where large numbers cancel.
    """
    terms = []
    rest = []
    for v in STATES.tolist():
        heard = [w for w, on in zip(weights, v, strict=True) if on] + [hidden]
        total = math.fsum(heard)
        terms.append(
            [b for b, on in zip(visible, v, strict=True) if on] + (heard if total > 0 else [])
        )
        rest.append(math.log1p(math.exp(-abs(total))))
    best = max(terms, key=math.fsum)
    against = [-term for term in best]
    above = [
        math.fsum([*addends, *against, more]) for addends, more in zip(terms, rest, strict=True)
    ]
    above = torch.tensor(above, dtype=torch.float64)
    return above - above.logsumexp(0), math.fsum([*best, above.logsumexp(0).item()])


def known(seed, num_blocks, dtype, constant=0.0, usual=0.8, images=40):
    """Blocks with scales of their own, for weights and for biases.

    `constant` is the size of the biases of eight more pixels, which are always the same.
    """
    generator = seeded_generator(seed)

    def scale():
        return SCALES[torch.randint(len(SCALES), (), generator=generator)]

    def normal(*shape):
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    # Some blocks have numbers of any size; the usual others give something to lose.
    blocks = []
    for _ in range(num_blocks):
        is_usual = torch.rand((), generator=generator) < usual
        weight_scale = 2.0 if is_usual else scale()
        bias_scale = 1.0 if is_usual else scale()
        weights = weight_scale * normal(WIDTH)
        visible = bias_scale * normal(WIDTH)
        hidden = bias_scale * normal(1)
        if seed % 2:  # centred: each unit is on half of the time when the others are
            visible = visible - weights / 2
            hidden = hidden - weights.sum(0, keepdim=True) / 2
        blocks.append([t.to(dtype).double() for t in (weights, visible, hidden)])
    log_p = torch.zeros(images).double()
    log_z = []
    rows = []
    for weights, visible, hidden in blocks:
        block_p, block_z = block_log_p(weights.tolist(), visible.tolist(), hidden.item())
        drawn = block_p.exp().multinomial(images, replacement=True, generator=generator)
        rows.append(STATES[drawn])
        log_p = log_p + block_p[drawn]
        log_z = [*log_z, block_z]
    weights = torch.block_diag(*(block[0][:, None] for block in blocks))
    visible = torch.cat([block[1] for block in blocks])
    hidden = torch.cat([block[2] for block in blocks])
    if constant:
        bias = (constant * (1 + torch.rand(8, generator=generator).double())).to(dtype).double()
        bias[::2] *= -1
        weights = torch.cat([weights, torch.zeros(8, num_blocks).double()])
        visible = torch.cat([visible, bias])
        rows.append((bias > 0).double().expand(images, -1))
        log_z += [torch.logaddexp(bias, bias.new_zeros(())).sum().item()]
        log_p = log_p - torch.nn.functional.softplus(-bias.abs()).sum()
    rbm = RBM(*(each.to(dtype) for each in (weights, visible, hidden)))
    return Known(rbm, torch.cat(rows, 1), log_p, math.fsum(log_z))


def cases(count, num_blocks):
    for seed in range(count):
        dtype = (torch.float32, torch.float64)[seed // 2 % 2]
        constant = 0.0 if seed % 3 else SCALES[seed % len(SCALES)].item()
        yield known(seed, num_blocks, dtype, constant)


def wrong(average, truth):
    """Whether a number is off by over three half-widths of its interval, and a hundredth."""
    low, high = average.interval
    off = truth - average.mean
    return abs(off) > 0.01 + 3 * max(high - average.mean if off > 0 else average.mean - low, 0.0)


def judged(case, **options):
    """Whether the evaluation is trusted; None if it is refused.

    First everything is checked that is said to be trusted, proven or impossible.
    """
    try:
        evaluation = evaluate(
            case.rbm, case.images, generator=seeded_generator(1), progress=False, **options
        )
    except InputError:
        assert case.rbm.largest_rounding > 0.05
        return None
    if evaluation.trustworthy:
        assert not wrong(evaluation.average, case.mean), (evaluation.average, case.mean)
    audited = audit_evaluation(
        case.rbm, case.images, evaluation, case.log_z, tolerance=1e-6 + 1e-15 * abs(case.log_z)
    )
    assert audited.verdict != AuditVerdict.IMPOSSIBLE, audited.reason
    for bound in audited.bounds:
        slack = 1e-15 * abs(case.log_z)
        assert bound.low - slack <= case.log_z <= bound.high + slack
    return evaluation.trustworthy


def counted(verdicts):
    return [verdicts.count(verdict) for verdict in (True, False, None)]


def test_exact_values_hold_at_all_scales():
    """Two hundred evaluations with as many audits."""
    trusted, _, refused = counted([judged(case) for case in cases(200, 5)])
    assert trusted > 120
    assert refused < 40


@pytest.mark.parametrize("part", range(4))
def test_estimates_hold_at_all_scales(part):
    """A hundred evaluations with as many audits: where chains hardly move, none is trusted."""
    options = {"exact": False, "steps": 64, "tempering_steps": 5_000}
    chosen = [case for number, case in enumerate(cases(100, 12)) if number % 4 == part]
    trusted, _, _ = counted([judged(case, **options) for case in chosen])
    assert trusted >= 5


def test_comparisons_hold_at_all_scales():
    """A model with its hidden units in another order is never better.

    One whose biases differ is better only if it is.
    """
    refused = 0
    for seed, case in enumerate(cases(100, 5)):
        rbm = case.rbm
        order = torch.randperm(5, generator=seeded_generator(seed))
        turned = RBM(rbm.weights[:, order], rbm.visible_bias, rbm.hidden_bias[order])
        try:
            comparison = compare(rbm, turned, case.images)
        except InputError:
            refused += 1
            continue
        assert comparison.verdict in (
            "no difference shown",
            "not trusted",
            "the models are the same",
        )
    assert refused < 20


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1e2, 1e5, 1e8, 1e12, 1e17])
def test_constant_pixels_are_evaluated_or_refused(size, dtype):
    """Pixels that no hidden unit sees, and one always on, seen by all.

    The rest is evaluated as without them.
    """
    case = known(4, 30, dtype, usual=1.0)
    width, units = case.rbm.weights.shape
    seen = torch.randn(units, generator=seeded_generator(2)).to(dtype)
    weights = torch.cat([case.rbm.weights, torch.zeros(4, units, dtype=dtype), seen[None]])
    bias = torch.cat(
        [case.rbm.visible_bias, torch.tensor([size, -size, -size, size, size]).to(dtype)]
    )
    # what the pixel that is always on says to the hidden units is taken from their biases
    with_pixels = RBM(weights, bias, case.rbm.hidden_bias - seen)
    constant = torch.tensor([1.0, 0, 0, 1, 1]).expand(len(case.images), -1)
    images = torch.cat([case.images, constant], 1)
    options = {"steps": 64, "tempering_steps": 5_000, "progress": False}
    if size >= 1e12:
        with pytest.raises(InputError, match=r"^model: expected weights and biases of which ln p"):
            evaluate(with_pixels, images, generator=seeded_generator(1), **options)
        return
    evaluation = evaluate(with_pixels, images, generator=seeded_generator(1), **options)
    assert evaluation.trustworthy
    assert not wrong(evaluation.average, case.mean)
    assert evaluation.dtype == (torch.float32 if size == 1e2 else torch.float64)
    assert evaluation.known_log_z.value == pytest.approx(case.log_z + 3 * size, abs=0.5)
    assert evaluation.num_visible == width + 5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bias", [0.0, 2e6, -2e6])
def test_what_is_evaluated_is_the_model_itself(bias, dtype):
    """ln Z and ln p*(v) are those of the model asked about, exact and estimated.

    With one pixel of any bias, too.
    """
    rbm = random_rbm(9, 6, seed=3)
    visible = rbm.visible_bias.clone()
    visible[4] += bias
    rbm = RBM(rbm.weights, visible, rbm.hidden_bias).to(dtype=dtype)
    log_p = joint_log_table(rbm).logsumexp(1)
    drawn = log_p.softmax(0).multinomial(40, replacement=True, generator=seeded_generator(1))
    images = all_states(9)[drawn]
    log_p = log_p[drawn]
    exact = evaluate(rbm, images)
    assert exact.exact.log_z == exact.known_log_z.value == exact_log_z(rbm)
    assert exact.exact.log_z == pytest.approx(log_z(rbm), rel=1e-14)
    assert torch.allclose(exact.log_unnormalized, log_p, rtol=1e-14, atol=1e-12)
    assert as_dict(exact)["exact"]["log_z"] == exact.exact.log_z
    options = {"steps": 64, "tempering_steps": 5_000, "exact": False, "progress": False}
    evaluation = evaluate(rbm, images, generator=seeded_generator(1), **options)
    assert evaluation.dtype == (torch.float64 if bias else torch.float32)
    assert evaluation.trustworthy
    low, high = evaluation.log_z_interval(0.9999)
    assert low < exact.exact.log_z < high < low + 1
    assert torch.allclose(evaluation.log_unnormalized, log_p, rtol=1e-14, atol=1e-5)


def test_a_pixel_that_is_not_always_as_its_bias_says():
    case = known(4, 5, torch.float64, usual=1.0)
    rbm = RBM(
        torch.cat([case.rbm.weights, torch.zeros(1, 5).double()]),
        torch.cat([case.rbm.visible_bias, torch.tensor([1e6]).double()]),
        case.rbm.hidden_bias,
    )
    pixel = torch.ones(len(case.images), 1)
    pixel[3] = 0
    evaluation = evaluate(rbm, torch.cat([case.images, pixel], 1))
    assert evaluation.average.mean == pytest.approx(case.mean - 1e6 / len(case.images), abs=1e-6)


# ---- the net below it


@pytest.mark.parametrize(
    ("interval", "caught"),
    [
        ((0.3, 0.5), True),
        ((1e-9, 2e-9), True),
        ((0.0, 0.5), False),
        ((-0.1, 0.5), False),
        ((-2.0, -1.0), False),
    ],
)
def test_an_average_above_zero_by_more_than_its_error_is_impossible(interval, caught):
    average = ImageAverage(sum(interval) / 2, interval, interval, 0.1, interval[1])
    doubts = doubts_above_zero(average)
    assert [doubt.word for doubt in doubts] == ["not trusted"] * caught


@pytest.mark.parametrize("exact", [True, False])
def test_a_wrong_log_z_is_caught_by_its_sign(exact, monkeypatch):
    """Whatever made ln Z too small by 200 nats, no command gives a number to quote."""
    case = known(4, 5, torch.float64, usual=1.0)
    name = "boltzmann_likelihood.evaluation.evaluation.exact_log_z"
    monkeypatch.setattr(name, lambda *_, **__: case.log_z - 200)
    options = {"steps": 32, "tempering_steps": 5_000, "progress": False}
    if not exact:
        known_log_z = FinishedRuns.known_log_z.fget
        shifted = property(lambda runs: known_log_z(runs).shifted(-200))
        monkeypatch.setattr(FinishedRuns, "known_log_z", shifted)
    evaluation = evaluate(
        case.rbm, case.images, generator=seeded_generator(1), exact=exact, **options
    )
    assert evaluation.average.mean > 100
    assert evaluation.word == "not trusted"
    text = describe(evaluation)
    assert "is impossible: ln p(v) is at most 0" in text
    assert "To quote: no number yet" in text
    assert "Verdict: trusted" not in text
    if exact:
        other = RBM(case.rbm.weights, case.rbm.visible_bias + 0.5, case.rbm.hidden_bias)
        assert compare(case.rbm, other, case.images).verdict == "not trusted"
        training = evaluate_training([case.rbm, other], case.images, progress=False)
        assert not training.trustworthy
        assert "is impossible" in describe_training(training)


@pytest.mark.parametrize(
    ("weight", "bias", "enough"),
    [
        (1, 1, True),
        (100, 1, True),
        (1e4, 1, False),
        (1, 1e4, True),
        (1, 1e5, False),
        (1e12, 1e12, False),
    ],
)
def test_the_sums_decide_the_type_of_the_chains(weight, bias, enough):
    """One large weight leaves no digits of the others in 16 bits; a bias is added as it is."""
    rbm = known(4, 30, torch.float64, usual=1.0).rbm
    weights = rbm.weights.clone()
    visible = rbm.visible_bias.clone()
    weights[0, 0] = weight
    visible[5] = bias
    # images in which no unit is always on
    model = RBM(weights, visible, rbm.hidden_bias)
    assert chain_dtype(model) == (torch.float32 if enough else torch.float64)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3, 1e6])
def test_rounding_is_no_difference(scale, dtype):
    """Hidden units in another order make the same distribution, with sums of other digits."""
    rbm = random_rbm(9, 6, seed=3)
    rbm = RBM(*(scale * tensor for tensor in rbm.tensors().values())).to(dtype=dtype)
    order = torch.tensor([4, 2, 0, 5, 1, 3])
    turned = RBM(rbm.weights[:, order], rbm.visible_bias, rbm.hidden_bias[order])
    test = torch.randint(2, (40, 9), generator=seeded_generator(1))
    for pair in ((rbm, turned), (turned, rbm)):
        comparison = compare(*pair, test)
        assert (comparison.verdict, comparison.wins) == ("no difference shown", None)
        assert comparison.difference.interval[0] < 0 < comparison.difference.interval[1]
