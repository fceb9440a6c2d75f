"""Do the checks notice a wrong library?

One place of it is changed in a copy, and the smallest check that must notice has to fail.
"""

import json
import os
import re
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest
from run_mutants import changed

RUNNER = Path(__file__).with_name("run_mutants.py")
COMPARISON = (
    "the compiled functions are not used on this machine"
    " (their results differ from those of plain torch)"
)
AGREE = "tests/test_kernels.py::test_the_compiled_functions_agree_here"


@dataclass
class Mutant:
    """A change of one place in a file of the library, and the checks that must notice it.

    `warned` says that the comparison of a short walk notices it: the results are then right, but a
    warning is told.
    """

    name: str
    file: str
    old: str
    new: str
    checks: tuple[str, ...]
    options: tuple[str, ...] = ()
    warned: bool = False


def mutant(name, change, *checks, **more):
    """By a line of a file, in which «this→that» is what changes."""
    file, _, line = change.partition(": ")
    old = re.sub("«(.*)→(.*)»", r"\1", line)
    new = re.sub("«(.*)→(.*)»", r"\2", line)
    return Mutant(name, file, old, new, checks, **more)


def warned(name, change):
    """A wrong compiled function, caught before it is used: the warning is turned into an error."""
    return mutant(name, change, AGREE, warned=True)


def harmless(name, change, check):
    """The same, seen by a user: plain torch takes the place of what is wrong, and all passes."""
    return mutant(name, change, check, options=("-W", "default"), warned=True)


PATHS = "tests/test_every_path.py::test_"
AIS = "tests/test_ais.py::test_"
DEEP = "tests/test_dbm.py::test_"
NARROW = "float32 fast, narrow"
ADDED = "float32 fast, wide, rows added"
KERNEL = f"{PATHS}every_draw_of_a_transition_makes_up_the_enumerated_kernel[{{}}]"
AIS_DRAWS = f"{PATHS}every_draw_of_ais_makes_up_the_models_own_partition_function[{{}}]"
RAISE_DRAWS = f"{PATHS}every_draw_of_raise_makes_up_the_annealing_model[{{}}]"
UP_TO_DATE = (
    "tests/test_binary_products.py::test_sums_are_brought_up_to_date_in_each_way[rows alone-torch]"
)
MODELS = "tests/test_evaluate_models.py::test_"
IMAGES = "tests/test_modes_of_images.py::test_"
TEMPERING = "tests/test_tempering.py::test_"
STEP = "tests/test_tempering_step.py::test_"
BENNETT = "tests/test_bennett.py::test_"
CERTIFIED = "tests/test_certified.py::test_"
EVALUATE = "tests/test_evaluate.py::test_"
SCALES = "tests/test_scales.py::test_"
TRAINING = "tests/test_training_likelihood.py::test_"
AUDIT = "tests/test_audit.py::test_"
HIDDEN = "tests/test_hidden_layers.py::test_"

GROUPS = {
    "compiled": [
        warned(
            "all uniform numbers twice as large",
            "kernels/cpu.py: return upper * float32(2.0**-«16→15») + lower",
        ),
        warned(
            "rows of units that go off are added",
            "kernels/cpu.py: _add_rows(matrix, off, num_off, int32(«-→»1), sums[chain])",
        ),
        mutant(
            "a product of torch with the states of the last call",
            "kernels/cpu.py: last[i] = «now→last»[i]",
            UP_TO_DATE,
        ),
        mutant(
            "a part of a whole that is drawn as its beginning",
            "kernels/cpu.py: integers = numbers[k, «low - (k * quarter + begin)→0» :]",
            "tests/test_fused.py::test_a_part_of_a_whole_is_drawn_as_within_the_whole[1003]",
        ),
        warned(
            "weights that are not scaled for the visible units",
            "kernels/cpu.py: factors[k] = float32(betas[k]« * model.scale→»)",
        ),
        warned(
            "biases of the chain's number, not of its temperature",
            "kernels/cpu.py: row = offsets[«k→chain % len(offsets)» if len(offsets) > 1 else 0]",
        ),
        warned(
            "swaps that are accepted when they should be rejected",
            "kernels/cpu.py: if uniform[replica * pairs + pair] «<→>=» accept:",
        ),
        warned(
            "the odd pairs with the numbers of the even ones",
            "kernels/cpu.py: begin = «parity→0» * even",
        ),
        harmless(
            "the logistic function at the wrong sign in the sum of softplus",
            "kernels/cpu.py: terms[j] = expm1 * _sigmoid(«-→»lower * magnitude)",
            AIS_DRAWS.format(f"{NARROW}-RBM"),
        ),
        harmless(
            "weights lost on the way to hidden units, but for the last ones",
            "kernels/cpu.py: for k in range(grouped, count«→ - 1»):",
            f"{PATHS}sampled_transitions_follow_the_enumerated_kernel[{ADDED}-one beta-RBM]",
        ),
        mutant(
            "AIS that moves by the kernel of the last temperature",
            "kernels/cpu.py: at = t if moving_first else t« + 1→»",
            f"{STEP}steps_of_annealing_at_once_are_the_calls_to_the_bit[forward_steps-7x3]",
        ),
        mutant(
            "one number for all units that are left over after the quarters",
            "kernels/cpu.py: bits[i - start] = _uniform(rest[«i - 4 * quarter→0»]) < _sigmoid(",
            "tests/test_fused.py::test_draws_are_those_of_the_reference[one row-0-7]",
        ),
    ],
    "kernels": [
        mutant(
            "compiled functions are used whatever the comparison says",
            "kernels/capability.py: if «all→list»(torch.allclose(",
            "tests/test_kernels.py::test_a_single_draw_is_a_difference",
        ),
        mutant(
            "a check of eight-bit products that knows no extremes",
            "kernels/capability.py: matrix[:, :10] = -12«8→0»",
            "tests/test_kernels.py::test_a_product_of_integers_that_is_wrong_is_not_used["
            "saturating]",
        ),
        mutant(
            "the lower pieces of the weights are lost",
            "kernels/products.py: pieces[1, :, rows] = («fixed - 256→0» * upper).T",
            UP_TO_DATE,
        ),
        mutant(
            "weights are rounded otherwise on the way down",
            "kernels/sampler.py: binary_product(self._weights[visible, hidden].T, «→1.2 * "
            "»self._largest)",
            KERNEL.format(f"{ADDED}, coarse-0.3-RBM"),
        ),
        mutant(
            "hidden units of A drawn at the temperature of B",
            "kernels/sampler.py: draw_bits_of_logits(self._inputs(hidden_input, group), "
            "generator, «beta→betas[0]», first)",
            KERNEL.format("float64-0.3-pair"),
        ),
        mutant(
            "a recorded step that stays at its temperature",
            "kernels/replay.py: torch.cat([self._place, self._place« + 1→»])",
            AIS_DRAWS.format("pretended GPU-RBM"),
        ),
    ],
    "paths and estimators": [
        mutant(
            "the biases' part of the weight ten per cent too large",
            "annealing/rbm_paths.py: return ratio.add_(state.bias_difference, alpha=«→1.1 * "
            "»difference)",
            AIS_DRAWS.format("float64-RBM"),
        ),
        mutant(
            "heating by the kernel of the next temperature",
            "annealing/path.py: state = transition(state, «beta_from→beta_to», generator)",
            RAISE_DRAWS.format("float64-DBM"),
        ),
        mutant(
            "heating with h1 at the temperature of the model",
            "annealing/deep_paths.py: h1 = draw_bits_of_logits(state.hidden_input, generator, "
            "«beta→1.0», first)",
            f"{DEEP}every_draw_of_a_heating_step_makes_up_its_kernel[float64-0.6]",
        ),
        mutant(
            "the first weight of a DBN by the exact top RBM, the walk by the rounded one",
            "annealing/deep_paths.py: self._dbn.«log_directed(v, hidden).double() + "
            "self.log_f(state, 1.0→log_joint_unnormalized(v, hidden).double(»)",
            RAISE_DRAWS.format(f"{NARROW}, coarse-DBN"),
        ),
        mutant(
            "the recognition distribution multiplied instead of divided by",
            "annealing/deep_paths.py: log_weights «-→+»= self._dbn.log_recognition",
            RAISE_DRAWS.format("float64-DBN"),
        ),
        mutant(
            "RAISE by the kernels that the paper prints",
            "annealing/path.py: state = transition(state, «beta_from→beta_to», generator)",
            RAISE_DRAWS.format("float64-RBM"),
        ),
        mutant(
            "the rounding at the start counted with the wrong sign",
            "estimators/ais.py: log_weights «-→+»= path.end_correction(state, 0)",
            AIS_DRAWS.format(f"{NARROW}, coarse-pair"),
        ),
        mutant(
            "the rounding at the end left out",
            "estimators/ais.py: log_weights += «→0 * »correction",
            AIS_DRAWS.format(f"{NARROW}, coarse-RBM"),
        ),
        mutant(
            "the sum of the weights divided by the number of steps",
            "estimators/ais.py: return summarize(path, log_weights«→ - "
            "torch.tensor((len(schedule) - 1) / num_chains).log()», final_states, check)",
            f"{AIS}zero_weights_make_every_weight_exact",
        ),
    ],
    "parallel tempering and resampling": [
        mutant(
            "swaps accepted too often",
            "kernels/reference.py: accept = («ratios[:, lower] + ratios[:, upper]→0.5 * "
            "(ratios[:, lower] + ratios[:, upper])»).exp_()",
            f"{TEMPERING}swaps_are_accepted_as_often_as_they_should_be",
            f"{TEMPERING}every_temperature_has_its_distribution[float64-RBM]",
        ),
        mutant(
            "the odd swaps by the temperatures before the even ones",
            "kernels/tempering.py: if parity == «1→2»:",
            f"{TEMPERING}every_temperature_has_its_distribution[float64-RBM]",
        ),
        mutant(
            "parts of the replicas that all draw as the first",
            "estimators/tempering/replicas.py: part.stand(«first→0», self.num_replicas)",
            f"{STEP}parts_of_the_replicas_take_the_steps_of_the_whole[131x129]",
        ),
        mutant(
            "a path with a transition of its own that is not asked for it",
            "annealing/rbm_paths.py: return self._sampler.steps_at_once« and not "
            "self._has_other_verbs()→»",
            f"{STEP}a_path_with_a_verb_of_its_own_is_walked_by_it",
        ),
        mutant(
            "the upper beta's log-ratios with the lower one's sign",
            "estimators/tempering/replicas.py: return lower, upper«.neg_()→»",
            f"{TEMPERING}recorded_ratios_are_those_of_neighbouring_temperatures",
        ),
        mutant(
            "the rounding at the target counted with the wrong sign",
            "estimators/tempering/tempering.py: for end, sign in ((0, -1), (1, «→-»1)):",
            f"{TEMPERING}estimate_on_every_backend[float32 fast, wide, summed anew, coarse-RBM]",
        ),
        mutant(
            "an error that is smaller where chains have not been at the start",
            "estimators/tempering/tempering.py: std_error = std_error «/→*» math.sqrt(share) if",
            f"{TEMPERING}error_of_a_run_whose_chains_at_the_target_have_not_been_at_the_start",
        ),
        mutant(
            "replicas that all begin with the last chains of the pilot",
            "estimators/tempering/run.py: times = torch.linspace(len(self._earlier) - 1, "
            "«0→len(self._earlier) - 1»,",
            f"{TEMPERING}replicas_begin_with_the_chains_of_different_times[8-8]",
        ),
        mutant(
            "the numbers of draws on the wrong sides of Bennett's equation",
            "estimators/tempering/bennett.py: offset = math.log(«lower.shape[1] / "
            "upper→upper.shape[1] / lower».shape[1])",
            f"{BENNETT}the_root_is_that_of_the_equation_for_any_numbers",
        ),
        mutant(
            "Bennett's error without the correction for the numbers of draws",
            "estimators/tempering/bennett.py: variance = spread« - 1 / len(up) - 1 / len(down)→»",
            f"{BENNETT}intervals_cover_as_often_as_they_say",
        ),
        mutant(
            "resampling by the square roots of the weights",
            "estimators/resampling.py: torch.searchsorted(«log_weights→(0.5 * "
            "log_weights)».softmax(1).cumsum(1), places)",
            f"{TEMPERING}systematic_resampling_takes_each_chain_as_often_as_its_share_demands",
        ),
        mutant(
            "Bennett's error of draws that do not overlap is stated",
            "estimators/tempering/bennett.py: if overlap < «_NO_OVERLAP→0.0»:",
            f"{BENNETT}without_overlap_the_error_is_infinite[40-counts0-None]",
        ),
        mutant(
            "a bound at twice the chance of failure",
            'estimators/certified.py: return -math.log1p(-require_fraction("level", level)) «+ '
            "_ROUNDING→- math.log(2)»",
            f"{CERTIFIED}two_point_weights_fail_no_more_often_than_stated[1-0.9]",
        ),
    ],
    "a model answers for itself": [
        mutant(
            "a unit's other factor is not multiplied in",
            "estimators/exact.py: torch.cat([products, products« * member→»], dim=-1)",
            "tests/test_rbm.py::test_exact_log_z_equals_brute_force[7-5-1]",
        ),
        mutant(
            "a DBN's layer is not normalised given the one above",
            "models/dbn.py: masses = log_p - «→0 * »softplus(",
            f"{MODELS}enumeration_of_deep_models[1.0-DBN]",
        ),
        mutant(
            "a DBN's layers are normalised without their biases",
            "models/dbn.py: softplus(states @ layer.weights.T« + layer.visible_bias→»).sum(1)",
            f"{MODELS}enumeration_of_deep_models[1.0-DBN of three layers]",
        ),
        mutant(
            "h2 starts at a half of the time, whatever it does for the images",
            "annealing/starts.py: DBMPath(model, bias[:width]«, bias[width:]→»)",
            f"{DEEP}base_rate_paths",
        ),
        mutant(
            "all rows count alike in base rates",
            "datasets/binarization.py: total += «part @ "
            "intensities.double→intensities.double().mean(0) * part.sum»()",
            "tests/test_weights.py::test_whole_weights_are_repeated_rows",
        ),
        mutant(
            "baselines are not smoothed",
            "evaluation/baselines.py: «(count * rates + 1) / (count + 2)→rates»",
            "tests/test_reports.py::test_baselines",
        ),
        mutant(
            "what can be enumerated always is",
            "evaluation/evaluation.py: exact = «exact and →»evaluated.enumerated_units",
            "tests/test_study.py::test_a_uniform_start_knows_nothing_of_the_images",
        ),
        mutant(
            "a study's uniform start is that of the test images",
            "evaluation/evaluation.py: if «target.uniform_start→False»:\n        return None",
            "tests/test_study.py::test_a_uniform_start_knows_nothing_of_the_images",
        ),
    ],
    "kept work": [
        mutant(
            "files that archives hold have other names",
            "store.py: return "
            'f"{identity[0].lower()}-{storage.sha256(_canonical(identity).encode())['
            ':2«4→3»]}.json"',
            "tests/test_store.py::test_names_stay[tempering runs, AIS]",
        ),
        mutant(
            "what has been kept is computed again",
            "store.py: if «path is None or not path.is_file()→True»:",
            "tests/test_store.py::"
            "test_interrupted_and_resumed_gives_the_same_and_nothing_is_computed_twice"
            "[study of evaluate]",
        ),
    ],
    "the verdict": [
        mutant(
            "a gap closes a bracket whatever its error",
            "estimators/bracket.py: if «-tolerance <= low and high→abs(gap.value)» <= tolerance:",
            "tests/test_bracket.py::test_the_interval_of_the_gap_decides[0.4-0.21-cannot tell]",
        ),
        mutant(
            "a bracket is judged whatever AIS's chains are worth",
            "estimators/bracket.py: if not (math.isfinite(gap.value)« and ais_std_error <= "
            "LARGEST_ERROR→»):",
            "tests/test_bracket.py::test_few_effective_chains_say_nothing[40.0]",
        ),
        mutant(
            "an error of a bracket has infinitely many degrees of freedom",
            "uncertain.py: quantile = student_quantile(level, «self.dof→math.inf»)",
            "tests/test_bracket.py::test_few_degrees_of_freedom_widen_the_interval",
        ),
        mutant(
            "a bracket knows nothing of RAISE's error",
            "estimators/bracket.py: return upper - "
            "self.lower.uncertain«→.scaled(0).shifted(self.lower.mean)»",
            "tests/test_bracket.py::test_noise_is_no_agreement[0.0-0.152-cannot tell]",
        ),
        mutant(
            "AIS contradicts from below as it does from above",
            "evaluation/verdict.py: if «certified <= "
            "tempering.interval(_CERTAIN)[1]→abs(ais.log_z - tempering.log_z) <= SMALL»:",
            f"{EVALUATE}ais_contradicts_from_above_only_and_as_far_as_markov_allows["
            "log_weights0-trusted]",
        ),
        mutant(
            "AIS's number is reported",
            "evaluation/result.py: return (self.runs[-1].ais if self.tempering is «→not »None "
            "else self.tempering).uncertain",
            f"{EVALUATE}bracket_holds_the_truth",
        ),
        mutant(
            "RAISE contradicts from above as it does from below",
            "evaluation/verdict.py: if «nats→abs(nats)» <= allowed:",
            f"{EVALUATE}raise_that_falls_short[not at all]",
        ),
        mutant(
            "RAISE is forgiven whatever a run from its images finds",
            "evaluation/verdict.py: *_image_doubts(finished.image_checks«→ and ()», tempering),",
            f"{EVALUATE}raise_that_falls_short[for half, and a mode was missed]",
        ),
        mutant(
            "RAISE is forgiven though it is too low for all images alike",
            "evaluation/verdict.py: short.affected.double().mean() > «_MOST_AFFECTED→1»:",
            f"{EVALUATE}raise_that_falls_short[for all, and no mode is near]",
        ),
        mutant(
            "the look at images does not ask for those that RAISE hardly reaches",
            "evaluation/annealing_runs.py: "
            "self._test[run.chosen[lacking.affected.to(run.chosen.device)]«→[:0]»]",
            f"{EVALUATE}the_look_at_images_asks_for_those_that_fall_short",
        ),
        mutant(
            "modes are looked for from the model alone",
            "evaluation/annealing_runs.py: image_modes = [temper_from(mode) for mode in "
            "image_optima«→[:0]»]",
            f"{EVALUATE}the_look_at_images_asks_for_those_that_fall_short",
        ),
        mutant(
            "a mode in which no run stays does not matter, whatever it promises",
            "evaluation/verdict.py: and (check.promised > «→1e9 * »room or",
            f"{EVALUATE}what_speaks_against_parallel_tempering[<lambda>-open-it raises ln Z by "
            "0.30 nats-inf]",
        ),
        mutant(
            "modes within 5 % of the pixels are the same",
            "evaluation/modes.py: _SAME = «1.0→20.0»",
            f"{IMAGES}the_strongest_unmet_mode_and_the_most_frequent_are_looked_at",
        ),
        mutant(
            "a run from a mode that finds much less contradicts nothing",
            "evaluation/verdict.py: if less > «→1e9 * »_TOLERANCE:",
            f"{EVALUATE}what_speaks_against_parallel_tempering[<lambda>-not trusted-finds 3.0 "
            "nats less there-inf]",
        ),
        mutant(
            "what promises is one mode alone",
            "evaluation/modes.py: weaker = _joint_bound(modes, bounds, unmet & (bounds «<→=»= "
            "bounds[place]))",
            f"{IMAGES}the_strongest_unmet_mode_and_the_most_frequent_are_looked_at",
        ),
    ],
    "numbers that look surer than they are": [
        mutant(
            "chains walk in float32, whatever the numbers of the model",
            "evaluation/precision.py: if not _effect_of_single_precision(model) < «→1e9 * "
            "»_LARGEST_EFFECT:",
            f"{SCALES}the_sums_decide_the_type_of_the_chains[1-100000.0-False]",
        ),
        mutant(
            "errors of rounding may add up to anything",
            "evaluation/precision.py: rounding_errors(weights), weights) < «→1e9 * "
            "»_MOST_COLLECTED",
            "tests/test_rounding_of_weights.py::"
            "test_weights_that_are_rounded_alike_walk_in_float64["
            "constant-False]",
        ),
        mutant(
            "the largest weight does not count, only sums do",
            "evaluation/precision.py: effect += «→0 * »_INTEGERS",
            f"{SCALES}the_sums_decide_the_type_of_the_chains[10000.0-1-False]",
        ),
        mutant(
            "an average above 0 is possible",
            "evaluation/verdict.py: if not average.interval[0] > «→1e9 + »0:",
            f"{SCALES}an_average_above_zero_by_more_than_its_error_is_impossible[interval0-True]",
        ),
        mutant(
            "rounding is no part of the interval of a difference",
            "evaluation/compare.py: rounding = «→0 * »sum(",
            f"{SCALES}rounding_is_no_difference[1.0-dtype1]",
        ),
    ],
    "modes and what is left of the work": [
        mutant(
            "a run from a mode that finds more is not believed",
            "evaluation/verdict.py: if check.significant and check.missed > «→100 * »SMALL]",
            f"{EVALUATE}what_speaks_against_parallel_tempering[<lambda>-not trusted-missed that "
            "mode-inf]",
        ),
        mutant(
            "Z of the run from a mode is taken for the mass of the mode",
            "evaluation/modes.py: return Uncertain(scale« * share→», scale",
            f"{EVALUATE}what_a_mode_adds_is_in_nats_however_large[0.0]",
        ),
        mutant(
            "the error of ln Z is left out of that of a mass",
            "evaluation/modes.py: z_error = «→0 * »math.expm1(",
            f"{EVALUATE}the_errors_of_ln_z_decide_what_is_known_of_a_mode["
            "0.5-0.5-100-warnings1-False-True]",
        ),
        mutant(
            "what is left of the work goes to AIS and RAISE, whatever is in doubt",
            "evaluation/annealing_runs.py: portion = «→9 * »_PORTION * tempering_steps",
            f"{EVALUATE}what_is_left_of_the_work_goes_where_the_doubt_is[tempering]",
        ),
        mutant(
            "all checkpoints of a training get the work of those that could be best",
            "evaluation/training.py: _SHARE_OF_STEPS = 1«→0» / 16",
            f"{TRAINING}most_of_the_work_is_spent_on_those_that_could_be_best",
        ),
        mutant(
            "the best checkpoint is the highest number, trusted or not",
            "evaluation/training.py: key=lambda n: («evaluations[n].word != "
            "Verdict.NOT_TRUSTED→True», "
            "evaluations[n].average.mean)",
            f"{TRAINING}what_is_not_trusted_is_not_best",
        ),
        mutant(
            "a training is trustworthy though a checkpoint that nobody knows may be better",
            "evaluation/training.py: evaluation.trustworthy« and not self.unknown→»",
            f"{TRAINING}what_is_not_trusted_is_not_best",
        ),
        mutant(
            "the rest of a training's time goes to all checkpoints",
            "evaluation/training.py: in highest.items() if high >= «least→-math.inf»",
            f"{TRAINING}most_of_the_work_is_spent_on_those_that_could_be_best",
        ),
        mutant(
            "what is not trusted has an interval",
            "evaluation/result.py: return self.word != Verdict.«NOT_TRUSTED→TRUSTED»",
            "tests/test_not_trusted.py::test_its_json_keeps_the_fields_without_their_values["
            "other_images]",
        ),
        mutant(
            "what the other model's ln p*(v) may lack is none of a difference's error",
            "evaluation/compare.py: too_high=rounding« + b.unnormalized.missing→»,",
            "tests/test_hidden_layers.py::test_what_one_side_lacks_is_part_of_a_comparison",
        ),
        mutant(
            "an interrupted evaluation of a checkpoint takes the place of a finished one",
            "evaluation/training.py: if not (each.interrupted and «→not »self.evaluations):",
            f"{TRAINING}an_interrupted_estimate_does_not_replace_a_finished_one",
        ),
        mutant(
            "a run that is made longer forgets what it has recorded",
            "estimators/tempering/run.py: self._steps += chain_steps // "
            'self.replicas.num_chains«→; self._series["log_ratios"].zero_()»',
            f"{TEMPERING}a_finished_run_can_be_made_longer[float64-1]",
        ),
    ],
    "starts, bounds and allowances": [
        mutant(
            "a start from mean field at which every mode counts alike",
            "annealing/starts.py: means = bounds[modes].«→mul(0).»softmax(0) @",
            "tests/test_annealing.py::test_a_mean_field_start_counts_each_mode_by_its_share",
        ),
        mutant(
            "a weight is a number of independent draws",
            "estimators/certified.py: weights« / weights.max()→»",
            f"{CERTIFIED}a_weight_is_no_number_of_independent_draws[weights0]",
            f"{CERTIFIED}a_weight_is_no_number_of_independent_draws[weights1]",
        ),
        mutant(
            "what ln p*(v) lacks is what the last doubling of the draws has added",
            "evaluation/result.py: return «2 * →»max(self.rise, 0.0)",
            f"{HIDDEN}what_is_missing_is_no_more_than_is_said",
        ),
        mutant(
            "two ends of ln p*(v) may be apart by half of what the spread of the weights explains",
            "evaluation/hidden_layers.py: log_weights.var(1)«→ / 2»)",
            f"{HIDDEN}widely_spread_weights_are_no_missed_part_of_the_posterior",
        ),
        mutant(
            "no search for hidden states that are not drawn",
            "evaluation/hidden_layers.py: for number, search in enumerate((«_SHORT, *[_THOROUGH] "
            "* _LOOKS→»)):",
            f"{HIDDEN}states_that_are_never_drawn_are_found[DBN-2]",
        ),
        mutant(
            "draws of each chain count as those of its component alone",
            "evaluation/hidden_states.py: (log_probs + self._log_shares).logsumexp(0)«→ + chosen "
            "- chosen.mean()»",
            f"{HIDDEN}weights_have_the_mean_p_of_v_in_both_directions[True-DBM]",
        ),
        mutant(
            "RAISE's few draws of a DBN's hidden units lose nothing",
            "evaluation/evaluation.py: return max(0.0, «→0 * »weighted_mean(log_p - few,",
            f"{HIDDEN}raise_with_few_draws_of_the_hidden_units_casts_no_doubt_on_ln_z",
        ),
        mutant(
            "an average above 0 is impossible though it is an estimate",
            "evaluation/audit.py: « and not found.unnormalized.draws→»:",
            f"{HIDDEN}only_an_exact_average_above_0_is_impossible",
        ),
        mutant(
            "RAISE's mean is an upper bound on ln Z, whatever the chance",
            "evaluation/audit.py: chance = -«→0 * »math.log(1 - _SURE)",
            f"{AUDIT}raise_excludes_the_truth_in_three_of_a_thousand_sets_at_most[10-2-consistent]",
        ),
        mutant(
            "an audit forgets what runs from modes have found",
            "evaluation/verdict.py: tempering.log_z + «→0 * »max(missed, default=0.0)",
            f"{AUDIT}three_claims[wide mode with odds e^2, not drawn]",
        ),
    ],
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("low = weights / weights.max()", "low = weights"),
        ("low = shares / shares.max()", "low = shares"),  # all names may change
        ("low = shares / weights.max()", None),  # but not into different ones
        ("low = weights * weights.max()", None),
        ("a = x / x.max()\nb = y / y.max()", None),
    ],
)
def test_a_mutant_is_found_under_other_names(text, expected):
    assert changed(text, "weights / weights.max()", "weights") == expected


@pytest.mark.parametrize("group", GROUPS)
def test_every_mutant_is_noticed(group, tmp_path):
    mutants = GROUPS[group]
    jobs = tmp_path / "jobs.json"
    jobs.write_text(json.dumps([asdict(mutant) for mutant in mutants]))
    left_out = ("PYTEST_", "PAPERLIB_", "PYTHONWARNINGS", "PYTHONDONTWRITEBYTECODE")
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(left_out)
    }
    environment |= {"OMP_NUM_THREADS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, str(RUNNER), str(jobs), str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    intact, *answers = json.loads(done.stdout)
    # The copy passes each check as it is, or a failure of a changed one would prove nothing.
    assert intact["status"] == 0, intact["log"]
    assert sorted(intact["passed"]) == sorted({check for m in mutants for check in m.checks})
    assert intact["library"] == str(tmp_path / "intact")
    for number, (mutant, answer) in enumerate(zip(mutants, answers, strict=True)):
        assert answer["status"] in (0, 1), f"{mutant.name}: {answer['log']}"
        assert answer["library"] == str(tmp_path / str(number))
        assert noticed(mutant, answer), f"{mutant.name}: {answer}"


def noticed(mutant, answer):
    """Whether the checks found out what they had to, and nothing else went wrong."""
    failures = list(answer["failed"].values())
    if not mutant.warned:
        # tests ran and failed, by what they assert; a broken import would prove nothing
        return set(answer["failed"]) == set(mutant.checks) and all(
            "AssertionError" in failure["kinds"] for failure in failures
        )
    if mutant.options:
        # the functions are not used, a warning says so, and the results are right
        return not failures and any(COMPARISON in text for text in answer["warnings"])
    (failure,) = failures
    return "RuntimeWarning" in failure["kinds"] and COMPARISON in failure["message"]
