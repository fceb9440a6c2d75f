"""What several places state of the same quantity is the same everywhere, and what the stored records say."""

import functools

import pytest
from notebooks import BOOK, NOTEBOOKS, ROOT, cells_of
from sentences import made, plain, sentences, written
from statements import QUANTITIES, holds, of_two_runs, walk

from boltzmann_companion.claims.checks import Stored

#: What commit 901b8c1 said, as readers and a referee found it in contradiction with another place: the page, the words, and the quantity.
SAID = {
    "1.2 chapter 13": (
        "13-reproduction-report",
        "At the paper's $K$ seven of eight brackets from the base rates are closed within a nat and three standard errors.",
        "how many brackets are closed",
    ),
    "1.2 chapter 8": (
        "08-raise",
        "Started at the base rates, with the paper's 100,000 steps, AIS and RAISE bracket the truth.\n"
        "One bracket is crossed, by a nat, and one stays open by four.",
        "how many brackets are closed",
    ),
    "1.2 chapter 10": ("10-deep-boltzmann-machines", "Omniglot DBM, uniform, K = 100,000: gap 1.5 nats, open", "a bracket"),
    "1.3 caption": (
        "10-deep-boltzmann-machines",
        "From the uniform start our DBMs end at 10,000; the paper's figure shows the two MNIST models.",
        "the largest K",
    ),
    "1.5 what we learned": (
        "what-we-learned",
        "**6. The top layer of a deep Boltzmann machine may be asleep.**\n"
        "Ten thousand steps close the brackets of both models to less than half a nat, and a hundred thousand to less than a tenth.",
        "a bracket",
    ),
    "1.5 section 10.6.4": (
        "10-deep-boltzmann-machines",
        "From the uniform start, with ten thousand, the bracket of the MNIST DBM closes as well.\n"
        "That of the Omniglot DBM stays open by nine nats.",
        "a bracket",
    ),
    "1.6": (
        "13-reproduction-report",
        "They agree within 0.1 nats for every RBM but mnistCD1-20: partly, 1 of 5 within 0.1",
        "brackets within a tenth of a nat",
    ),
    "1.7": (
        "status",
        "| chapter | size | claims that hold |\n|---|---|---|\n| {doc}`02-markov-chains-and-gibbs-sampling` | digits | 74 of 79 |",
        "claims of a chapter",
    ),
    "1.8": (
        "08-raise",
        "CSL is 10 to 74 nats below RAISE from the base rates for five models.",
        "CSL",
    ),
    "1.11": (
        "13-reproduction-report",
        "With the authors' weights, from the uniform start, brackets are open: mnistCD25-500 1.94.\n\n"
        "From the uniform start AIS and RAISE agree within two nats: gaps are mnistCD25-500 3.00 ± 0.52 at K = 100,000.",
        "a bracket",
    ),
    "1.12": (
        "06-full-size-rbms",
        "But by how many nats depends on the epoch: CD3(500) is ahead of CD1(500) by 42 nats after 10 epochs.",
        "CD3(500) over CD1(500)",
    ),
    "A1": (
        "README",
        "- Error bars can be counted: on nine models whose ln Z is known exactly, the 95 % intervals of parallel tempering hold the truth "
        "in 853 of 900 runs with 100,000 chain-steps, and those of AIS in 691 of 900.",
        "853 of 900 intervals",
    ),
    "A2": ("what-we-learned", "CSL alone does not: it is $-110.2$ nats here and $-145.3$ there.", "CSL beside the paper's"),
    "A11": (
        "large-scale",
        "Of the papers' longest runs, with 100,000 steps, those of the two deep Boltzmann machines from the uniform start are missing.",
        "the largest K",
    ),
}  # fmt: skip
# What the README of that commit showed as six lines of one report: readers 1.4.
TWO_RUNS = """\
Average test log-probability, by parallel tempering: -28.50, 95 % interval -28.56 to -28.43
For scale: uniform model -69.31, independent pixels with the base rates of the test images -69.07.
To quote: -28.48 nats, 95 % interval -28.55 to -28.42
"""


@functools.cache
def walked():
    return walk([*written(), *made()], Stored())


def test_no_place_contradicts_the_records():
    wrong = [f"{page}: {sentence}\n    {why}" for page, sentence, why in walked().wrong]
    assert not wrong, "\n".join(["", *wrong])


@pytest.mark.parametrize("name", [quantity.name for quantity in QUANTITIES])
def test_every_quantity_is_stated_in_several_places_and_any_other_number_is_found(name):
    found = walked().found[name]
    assert len({each.sentence for each, *_ in found}) >= 2
    for each, *known in found:
        for key, said in each.said.items():
            other = "crossed" if said[-1].isalpha() and said != "crossed" else "777.7"
            assert not holds(each._replace(said=each.said | {key: other}), *known), said


@pytest.mark.parametrize(("page", "words", "quantity"), SAID.values(), ids=SAID)
def test_what_contradicted_another_place_is_found(page, words, quantity):
    wrong = walk(list(sentences(page, words)), Stored()).wrong
    assert {why.split(":")[0] for _, _, why in wrong} >= {quantity}


def test_plain_text_has_its_numbers_as_digits():
    text = "the **MNIST DBM**: less than half a nat at $K = 100{,}000$, two hundredths with ten thousand"
    assert plain(text) == "the MNIST DBM: less than 0.5 nats at K = 100000, 0.02 with 10000"


def test_a_report_is_of_one_run():
    texts = {path.name: path.read_text() for path in (ROOT / "README.md", *BOOK.glob("*.md"))}
    for path in NOTEBOOKS:
        texts[path.name] = "\n".join(
            out.get("text", "") for cell in cells_of(path) for out in cell.outputs
        )
    assert not [wrong for page, text in texts.items() for wrong in of_two_runs(page, text)]
    assert list(of_two_runs("README", TWO_RUNS))
