"""Experiment files as text, a part at a time, and the experiment that such a text describes."""

import tomllib

from latecomer.experiments import experiment_file

THETA = 'theta = { dim = 5, value = "uniform" }'
ACTIONS = 'actions = { law = "binary", count = 3 }'
DELAYS = 'delays = { law = "geometric", mean = 5 }'
POLICY = '[policies.ucb]\npolicy = "OTFLinUCB"\nwindow = 10'
OURS = "[policies.ours]\npolicy = 'recommended'\nwindow = 10"


def text(*, top: str = "horizon = 50", world: str = f"{THETA}\n{ACTIONS}\n{DELAYS}", policies: str = POLICY) -> str:
    """Return the text of a file, the least that is whole where nothing is given."""
    return f"{top}\n[world]\n{world}\n{policies}\n"


def parse(source: str) -> experiment_file.ExperimentFile:
    """Return the experiment that a text describes."""
    return experiment_file.parse_experiment(tomllib.loads(source))
