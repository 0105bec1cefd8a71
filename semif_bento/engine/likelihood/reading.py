"""Run questions and options behind one context, and read how probable the options' tokens are.

Knows tokens; knows nothing of texts, priors or scores. An option's last token is never run: it is
read at the one before it. Options of one token are read at the question's end, and one whose tokens
begin another's, along that one.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from semif_bento.caller import Caller
from semif_bento.engine.backbone import Backbone
from semif_bento.engine.budget import BranchBudget
from semif_bento.engine.layout import Stem
from semif_bento.engine.likelihood.encoded import EncodedOptions, Ids
from semif_bento.engine.likelihood.head import TokenHead
from semif_bento.engine.likelihood.priors import LogProbs
from semif_bento.engine.prefix import PrefixState


@dataclass(frozen=True, slots=True)
class Branch:
    """One question and what is run behind it; `options` of its decision are read along it."""

    decision: int
    question_ids: Ids
    rest: Ids
    options: tuple[int, ...]

    @property
    def ids(self) -> Ids:
        """Return the tokens that are run."""
        return self.question_ids + self.rest


@dataclass(slots=True)
class Reading:
    """What was read, and what it took: forwards, and tokens that had to be run and that were."""

    log_probs: LogProbs = ()
    groups: int = 0
    tokens: int = 0
    padded_tokens: int = 0


class Reader:
    """Reads options with one model; every group fits the budget, beside what the head takes."""

    def __init__(self, backbone: Backbone, head: TokenHead, budget: BranchBudget) -> None:
        self.backbone, self.head, self.budget = backbone, head, budget

    def read(
        self,
        prefix: PrefixState,
        questions: Sequence[Ids],
        options: Sequence[EncodedOptions],
        caller: Caller,
    ) -> Reading:
        """Return the log-probability of every distinct option of every question behind a prefix.

        What is run together, and so every bit, depends on the arguments' ids alone, and not on the
        order in which options were given.

        Raises:
            ClientClosed: the caller left; nobody is asked during a forward.
            ScoringFailed: a log-probability is not finite.
        """
        branches = find_branches(questions, options)
        found = [[0.0] * len(row.distinct) for row in options]
        reading = Reading()
        lengths = [len(branch.ids) for branch in branches]
        for group in self.budget.groups(lengths, prefix.length):
            caller.require_presence()
            chosen = [branches[place] for place in group]
            self._read_group(prefix, chosen, options, found)
            stems = {branch.decision: len(branch.question_ids) for branch in chosen}
            reading.groups += 1
            reading.tokens += sum(stems.values()) + sum(len(branch.rest) for branch in chosen)
            reading.padded_tokens += self.backbone.padded_tokens([lengths[i] for i in group])
        reading.log_probs = tuple(map(tuple, found))
        return reading

    def _read_group(
        self,
        prefix: PrefixState,
        branches: Sequence[Branch],
        options: Sequence[EncodedOptions],
        found: list[list[float]],
    ) -> None:
        stems = [Stem(branch.decision, len(branch.question_ids)) for branch in branches]
        states = self.backbone.branch_states(prefix, [b.ids for b in branches], stems)
        wanted: list[tuple[int, int, int, int]] = []  # place of the state, token, decision, option
        for branch, path in zip(branches, states.paths, strict=True):
            for option in branch.options:
                for step, token in enumerate(options[branch.decision].distinct[option]):
                    place = path.place(len(branch.question_ids) - 1 + step)
                    wanted.append((place, token, branch.decision, option))
        wanted.sort()
        rows = {place: row for row, place in enumerate(dict.fromkeys(w[0] for w in wanted))}
        hidden = states.hidden[torch.tensor(list(rows), device=states.hidden.device)]
        log_probs = self.head.log_probs(
            hidden, [rows[place] for place, *_ in wanted], [token for _, token, *_ in wanted]
        )
        summands: dict[tuple[int, int], list[float]] = {}
        for (_, _, decision, option), log_prob in zip(wanted, log_probs, strict=True):
            summands.setdefault((decision, option), []).append(log_prob)
        for (decision, option), values in summands.items():
            found[decision][option] = math.fsum(values)


def find_branches(questions: Sequence[Ids], options: Sequence[EncodedOptions]) -> list[Branch]:
    """Return the fewest branches along which every option can be read, shortest first."""
    branches: list[Branch] = []
    for index, (question, row) in enumerate(zip(questions, options, strict=True)):
        for rest, places in _rests(row.distinct):
            branches.append(Branch(index, question, rest, places))
    return sorted(branches, key=lambda branch: (len(branch.ids), branch.decision, branch.rest))


def _rests(options: Sequence[Ids]) -> list[tuple[Ids, tuple[int, ...]]]:
    """Return what must be run of options, each with the options that are read along it."""
    ordered = sorted({ids[:-1] for ids in options})
    # Of ordered sequences, one that begins others comes right before the first of them.
    whole = [
        ids
        for ids, after in zip(ordered, [*ordered[1:], None], strict=True)
        if after is None or after[: len(ids)] != ids
    ]
    along: dict[Ids, list[int]] = {}
    for place, ids in enumerate(options):
        along.setdefault(whole[bisect_left(whole, ids[:-1])], []).append(place)
    return [(rest, tuple(places)) for rest, places in along.items()]
