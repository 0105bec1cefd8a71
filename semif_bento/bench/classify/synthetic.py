"""The default pairs: seeded, shaped like the published set G; knows nothing of tokenizers.

303 pairs in 100 groups of two to four, each group one long premise and one instruction, and a
hypothesis for every option, worded as a decision words it.
"""

import random

from semif_bento.bench.classify.inputs import NamedPair, PairFile
from semif_bento.entailment import render_hypothesis

GROUPS = 100
LARGER, SMALLER = 13, 10
"""Groups with one hypothesis more and one less than three: 303 pairs in all."""
MIN_PREMISE_CHARACTERS, MAX_PREMISE_CHARACTERS = 1900, 2900
"""About 600 tokens in the middle, with the vocabulary of the small model."""

SENTENCES = (
    "Order {n} left depot {d} on {day} and was scanned again {h} hours later.",
    "The driver rang twice at number {d}, and nobody opened before {h} o'clock.",
    "A purchase of {n} euros can be returned within {d} days when the seal is unbroken.",
    "{name} wrote that the {thing} arrived with a crack along its {part}.",
    "According to the log, pump {d} was stopped by {name} and never restarted on {day}.",
    "Clause {d} lets either side end the contract with {h} weeks' notice in writing.",
    "The {thing} was tested for {h} hours at {d} degrees; its {part} held.",
    "On {day} the committee heard {name} and put off the vote about the {thing}.",
    "Invoice {n} was paid late, and the fee of {d} euros was waived by {name}.",
    "Nobody in the workshop could say who had last replaced the {part} of the {thing}.",
)
QUESTIONS = (
    "May the customer return the {thing}?",
    "What happened to the {part}?",
    "Who has to act next, given what {name} wrote?",
    "Was the {thing} delivered before {day}?",
    "How urgent is the case of {name}?",
)
OPTIONS = (
    ("yes", "The text states it outright."),
    ("no", "The text states the opposite."),
    ("unclear", "The text leaves it open, whatever one may suspect."),
    ("billing", "It is about an invoice, a fee or a refund that is owed."),
    ("logistics", "It is about a parcel, a depot or a driver."),
    ("escalate", "A person has to decide, since the rules contradict each other."),
    ("broken", "The part is damaged beyond repair."),
    ("later", "Nothing can be done before the committee meets again."),
)
WORDS = {
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday"),
    "name": ("Ms Okafor", "Mr Lind", "Dr Haddad", "the night shift", "a neighbour"),
    "thing": ("kettle", "ladder", "projector", "bicycle", "heat pump", "telescope"),
    "part": ("handle", "seal", "frame", "mount", "left hinge", "cable"),
}


def make_pairs(groups: int = GROUPS, seed: int = 0) -> PairFile:
    """Return the default pairs, or the first groups of them; the same arguments give the same."""
    source = random.Random(seed)
    sizes = [4] * LARGER + [2] * SMALLER + [3] * (GROUPS - LARGER - SMALLER)
    source.shuffle(sizes)
    pairs: list[NamedPair] = []
    for group, size in enumerate(sizes[:groups]):
        premise = _premise(source)
        question = _fill(source.choice(QUESTIONS), source)
        for label, criterion in source.sample(OPTIONS, size):
            name = f"g{group:03}"
            hypothesis = render_hypothesis(question, label, criterion)
            pairs.append(NamedPair(f"{name}-{label}", premise, hypothesis, name))
    return PairFile(tuple(pairs))


def _premise(source: random.Random) -> str:
    wanted = source.randint(MIN_PREMISE_CHARACTERS, MAX_PREMISE_CHARACTERS)
    text = ""
    while len(text) < wanted:
        text += " " + _fill(source.choice(SENTENCES), source)
    return text.strip()


def _fill(sentence: str, source: random.Random) -> str:
    numbers = {"n": source.randint(1000, 9999), "d": source.randint(2, 98)}
    chosen = {name: source.choice(words) for name, words in WORDS.items()}
    return sentence.format(**chosen, **numbers, h=source.randint(2, 23))
