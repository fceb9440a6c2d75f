"""Does nbval alone notice a wrong library?

One place of a copy is changed, and `pytest --nbval-lax` of the chapter that is about it has to
fail. Nothing else runs than that command. A chapter counts as failed only if an output differs from
the committed one; the run ends there.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass

import pytest
from run_mutants import ROOT, changed, copy_of

# For a chapter, the packages and the notebooks are copied, and what they read is linked.
COPIED = ("paperlib", "likelihood", "book")
LINKED = ("data", "figures", "_toc.yml")


@dataclass
class Mutant:
    """A change of one place, and what nbval shows of it.

    The place is a line of a file in which «this→that» is what changes.
    """

    name: str
    chapter: str
    change: str
    shown: str


MUTANTS = [
    Mutant(
        "an autocorrelation time that is one too large",
        "02",
        "mcmc/diagnostics.py: return max(2 * neighbours[:cutoff].sum().item()« - 1→», 1 / "
        "len(correlations))",
        "block",
    ),
    Mutant(
        "CD's bias relative to its update, not to the gradient",
        "03",
        "studies/contrastive_divergence.py: (expected_update - gradient).norm() / "
        "«gradient→expected_update».norm()",
        "bias",
    ),
    Mutant(
        "a thousandth of the last weights lost",
        "04",
        "annealing/path.py: log_weights += «→0.999 * »self.log_ratio(state, beta_from, beta_to)",
        "give the same weights",
    ),
    Mutant(
        "AIS's standard error times 1.3",
        "05",
        "estimators/estimate.py: return «→1.3 * »(weights.std() / weights.mean()).item()",
        "CD1(16)",
    ),
    Mutant(
        "AIS with one chain less",
        "05",
        'estimators/ais.py: num_chains = require_count("num_chains", num_chains)«→ - 1»',
        "CD1(16)",
    ),
    Mutant(
        "ln Z larger by 0.05",
        "06",
        "estimators/estimate.py: return log_mean_exp(self.log_weights).item()«→ + 0.05»",
        "CD1(50)",
    ),
    Mutant(
        "no burn-in of the chains that start a ratio",
        "06",
        "annealing/rbm_paths.py: for _ in range(«self._burn_in→1»):",
        "CD25(50)/CD3(50)",
    ),
    Mutant(
        "the bound of a DBN without its entropy",
        "07",
        "estimators/dbn_bound.py: return self.expected_log_joint.mean(1)« + self.entropy→» - "
        "self.log_z",
        "dbn_lower_bound",
    ),
    Mutant(
        "CD's learning rate larger by a tenth",
        "07",
        "learning/contrastive_divergence.py: step = «→1.1 * »rate / len(batch)\n"
        "    negative_step = «→1.1 * »rate / len(visible)",
        "CD-1",
    ),
    Mutant(
        "RAISE's standard error divided by 1.3",
        "08",
        "estimators/control_variates.py: test_set_std_error=test_set_error.std_error«→ / 1.3»,",
        "digitsCD1-50",
    ),
    Mutant(
        "RAISE larger by 0.05",
        "08",
        "estimators/reverse_ais.py: return log_mean_exp(self.log_weights)«→ + 0.05»",
        "at the largest K every bracket is closed",
    ),
    Mutant(
        "the uniform start in place of the base rates",
        "08",
        'annealing/rbm_paths.py: bias = bias_at_start("visible_bias", «visible_bias→None», '
        "rbm.visible_bias)",
        "effective AIS runs",
    ),
    Mutant(
        "one step less",
        "09",
        'annealing/schedules.py: num_steps = «require_count("num_steps", num_steps)→max(1, '
        'require_count("num_steps", num_steps) - 1)»',
        "CD1(16)",
    ),
    Mutant(
        "a control variate that is subtracted",
        "09",
        "estimators/control_variates.py: mean=(weighted_mean(residuals, batch_weights) «+→-» "
        "alpha * x_mean)",
        "the library agree",
    ),
    Mutant(
        "heating by the kernel of the next temperature",
        "10",
        "annealing/path.py: state = transition(state, «beta_from→beta_to», generator)",
        "DBM",
    ),
    Mutant(
        "the divergence of q without its logarithm",
        "11",
        "variational/elbo.py: return torch.where(q > 0, q * (log_q« - log_p→»), 0).sum(-1)",
        "the posterior",
    ),
    Mutant(
        "a VAE's density without its constant",
        "12",
        "variational/vae.py: return -(0.5 * scaled.square() + log_width« + 0.5 * math.log(2 * "
        "math.pi)→»).sum(-1)",
        "−24.73",
    ),
    Mutant(
        "agreement within two standard errors in place of three",
        "13",
        "claims/report.py: allowed = «ALLOWED→2.0» * self.joint_error",
        "agrees",
    ),
    Mutant(
        "CSL with the states of the burn-in",
        "15",
        "studies/kept_states.py: if step >= «burn_in→0»:",
        "1,000",
    ),
    Mutant(
        "Bennett's iteration stopped after two rounds",
        "16",
        "tempering/bennett.py: for _ in range(«_MOST_ROUNDS→2»):",
        "weak, in all pixels",
    ),
    Mutant(
        "TAP without its second term",
        "17",
        "variational/log_z.py: return value« + second / 2→»",
        "TAP",
    ),
]


def mutated(folder, change):
    """A copy of the repository with the change."""
    for name in COPIED:
        copy_of(ROOT / name, folder / name)
    for name in LINKED:
        (folder / name).symlink_to(ROOT / name)
    file, _, line = change.partition(": ")
    old = re.sub("«(.*?)→(.*?)»", r"\1", line)
    new = re.sub("«(.*?)→(.*?)»", r"\2", line)
    [source] = [path for name in COPIED for path in (folder / name).glob(f"**/{file}")]
    text = changed(source.read_text(), old, new)
    assert text is not None, f"{file} has no place, or several, that is {old!r}"
    source.write_text(text)
    return folder


def nbval(folder, chapter):
    """`pytest --nbval-lax` of a chapter in a copy, as far as its first failure."""
    left_out = ("PYTEST_", "PAPERLIB_", "GIT_", "PYTHONDONTWRITEBYTECODE")
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(left_out)
    }
    packages = [folder, folder / "likelihood", folder / "book" / "companion"]
    environment |= {"PYTHONPATH": os.pathsep.join(map(str, packages)), "OMP_NUM_THREADS": "1"}
    [path] = (folder / "book").glob(f"{chapter}-*.ipynb")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--color=no", "-x", "-vv"]
    command += ["--nbval-lax", "--nbval-current-env", str(path)]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.chapter}: {mutant.name}")
def test_nbval_notices(mutant, tmp_path):
    done = nbval(mutated(tmp_path, mutant.change), mutant.chapter)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Cell outputs differ" in done.stdout, done.stdout
    differences = done.stdout.partition("Traceback:")[2]
    lines = re.findall(r"^  [-+] .*", differences, re.MULTILINE)
    assert any(mutant.shown in line for line in lines), differences
    shutil.rmtree(tmp_path)


def test_nbval_passes_in_a_copy_that_is_as_it_was(tmp_path):
    """Otherwise the failures of the others would prove nothing."""
    same = "estimators/estimate.py: return log_mean_exp(self.log_weights).item()«→  # as it was»"
    done = nbval(mutated(tmp_path, same), "09")
    assert done.returncode == 0, done.stdout + done.stderr
