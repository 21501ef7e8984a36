"""An experiment file that cannot be right: the error has the full key, the rule and the value."""

import re
from pathlib import Path

import pytest
from experiment_texts import ACTIONS, DELAYS, OURS, POLICY, THETA, parse, text

from latecomer.errors import InputError
from latecomer.experiments import experiment_file


def delays(value: str) -> str:
    return text(world=f"{THETA}\n{ACTIONS}\ndelays = {value}")


def offer(value: str) -> str:
    return text(world=f"{THETA}\nactions = {value}\n{DELAYS}")


def theta(value: str) -> str:
    return text(world=f"theta = {value}\n{ACTIONS}\n{DELAYS}")


REFUSED = [
    # the top
    (text(top=""), "horizon is missing: an experiment needs it"),
    (text(top="horizon = 50\nrunz = 3"), "runz is not a key of an experiment, which has .*; did you mean 'runs'?"),
    (text(top="horizon = 5e3"), "horizon must be a whole number; got 5000.0"),
    (text(top="horizon = 0"), "horizon must be at least 1 .*; got 0"),
    (text(top="horizon = 5\nruns = 0"), "runs must be at least 1 .*; got 0"),
    (text(top='horizon = 5\nseed = "x"'), "seed must be a whole number; got 'x'"),
    ("horizon = 5\nworld = 3\npolicies = 4", r"world must be a table, \[world\]; got 3"),
    # theta
    (theta("4"), "world.theta must be a list of numbers, or .*; got 4"),
    (theta("[]"), r"world.theta must be a list of numbers; got \[\]"),
    (theta("[0.1, 'x']"), r"world.theta\[1\] must be a number; got 'x'"),
    (theta("[0.1, true]"), r"world.theta\[1\] must be .*; got true"),
    (theta("[0.1, nan]"), "world.theta must be a vector of finite numbers; got .*nan.*"),
    (theta("{ dim = 4 }"), "world.theta.value is missing: theta needs it"),
    (theta("{ dim = 0, value = 'uniform' }"), "world.theta.dim must be at least 1 .*; got 0"),
    (theta("{ dim = 4, value = 'ones' }"), "world.theta.value must be one of 'uniform', 'ramp'; got 'ones'"),
    (theta("{ dim = 4, value = 'ramp', norm = 0 }"), "world.theta.norm must be above 0 and finite; got 0"),
    (
        text(world=f"{THETA}\n{ACTIONS}\n{DELAYS}\nreward = 'probit'"),
        "world.reward must be one of 'linear', .*; got 'probit'",
    ),
    (text(world=f"{THETA}\n{ACTIONS}\n{DELAYS}\nintercept = 'x'"), "world.intercept must be a finite number; got 'x'"),
    (theta("[1, 1]"), r"world: every mean reward .* must be in \[0, 1\]; action .*: change theta, or the actions"),
    # actions
    (offer("'binary'"), "world.actions must be a table such as .*; got 'binary'"),
    (offer("{ count = 3 }"), "world.actions.law is missing: it must be one of 'binary', .*"),
    (offer("{ law = 'binry', count = 3 }"), "world.actions.law must be one of .*; got 'binry'; did you mean 'binary'?"),
    (offer("{ law = 3 }"), "world.actions.law must be one of .*; got 3"),
    (offer("{ law = 'binary' }"), "world.actions.count is missing: the binary law needs it"),
    (offer("{ law = 'binary', count = 'ten' }"), "world.actions.count must be a whole number; got 'ten'"),
    (offer("[]"), r"world.actions must be a list of rows, each a list of numbers; got \[\]"),
    (offer("[[1, 0, 0, 0, 0], 3]"), r"world.actions\[1\] must be a list of numbers; got 3"),
    (offer("[[1, 0, 0, 0, 0], [1]]"), r"world.actions\[1\] must have a number for each dimension.*; got \[1\]"),
    (offer("[[1, 0, 0, 0, 'x']]"), r"world.actions\[0\]\[4\] must be a number; got 'x'"),
    (offer("[[1, 0], [0, 1]]"), "world.actions must be drawn as .* since theta has 5 entries; .*"),
    (offer("[[-1, 0, 0, 0, 0]]"), r"world: every mean reward .* action \[-1.0, .*"),
    # delays
    (text(top="horizon = 5\nper_day = 0"), "per_day must be above 0 and finite; got 0"),
    (delays("{ law = 'log' }"), "world.delays.file is missing: the log law needs it"),
    (delays("{ law = 'log', file = 3 }"), "world.delays.file must be the path of a log, Parquet or CSV; got 3"),
    (
        delays("{ law = 'log', file = 'nowhere.csv' }"),
        "world.delays.file must be a log of conversions: nowhere.csv cannot be read: No such file .*",
    ),
    (text(world=f"{THETA}\n{ACTIONS}"), "world.delays is missing: a world needs it"),
    (delays("{ law = 'geometric' }"), "world.delays.mean is missing: the geometric law needs it"),
    (delays("{ law = 'geometric', mean = 0.5 }"), "world.delays.mean must be finite and at least 1.*; got 0.5.*"),
    (delays("{ law = 'geometric', mean = '5' }"), "world.delays.mean must be a number.*; got '5'"),
    (delays("{ law = 'geometric', mean = true }"), "world.delays.mean must be .*; got true"),
    (delays(f"{{ law = 'geometric', mean = 1{'0' * 400} }}"), "world.delays.mean must fit in 64 bits.*; got 10+…"),
    (delays("{ law = 'geometric', maen = 5 }"), "world.delays.maen is not a key .*; did you mean 'mean'?"),
    (delays("{ law = 'log-normal' }"), "world.delays.law must be one of .*; did you mean 'lognormal'?"),
    (delays("{ law = 'never', x = 1 }"), "world.delays.x is not a key of the never law, which has 'law'"),
    (delays("{ law = 'empirical', delays = 3 }"), "world.delays.delays must be a list of numbers; got 3"),
    (delays("{ law = 'empirical', delays = [1, [2]] }"), r"world.delays.delays\[1\] must be a number; got \[2\]"),
    (delays("{ law = 'empirical', delays = [1, 2.5] }"), "world.delays.delays must be whole numbers of rounds.*"),
    (delays("{ law = 'mixture', laws = 3, weights = [1] }"), "world.delays.laws must be a list of tables; got 3"),
    (
        delays("{ law = 'mixture', laws = [{ law = 'fixed', delay = 1 }, { law = 'fixed' }], weights = [0.5, 0.5] }"),
        r"world.delays.laws\[1\].delay is missing: the fixed law needs it",
    ),
    (
        delays("{ law = 'mixture', laws = [{ law = 'pareto', shape = 1, scale = -1 }], weights = [1] }"),
        r"world.delays.laws\[0\].scale must be above 0 and finite; got -1",
    ),
    (
        delays("{ law = 'mixture', laws = [{ law = 'never' }], weights = [0.4] }"),
        "world.delays.weights must sum to 1; got 0.4: .*",
    ),
    (
        delays("{ law = 'mixture', laws = [{ law = 'never' }], weights = [0] }"),
        r"world.delays.weights\[0\] must be above 0 .*",
    ),
    # policies
    (text(policies=""), "policies is missing: an experiment needs it"),
    (text(policies="[policies]"), r"policies must hold at least one table, \[policies.NAME\]; got none"),
    (text(policies="[policies]\nucb = 3"), r"policies.ucb must be a table, \[policies.ucb\]; got 3"),
    (
        text(policies="[policies.ucb]\nwindow = 1"),
        "policies.ucb.policy is missing: it must be one of 'recommended', 'OTFLinUCB', .*",
    ),
    (text(policies="[policies.ucb]\npolicy = 'OTFLinUCB'"), "policies.ucb.window is missing: OTFLinUCB needs it"),
    (text(policies="[policies.ours]\npolicy = 'recommended'"), "policies.ours.window is missing: recommended needs it"),
    (text(policies=OURS.replace("'rec", "'Rec")), "policies.ours.policy must be .*; did you mean 'recommended'?"),
    (text(policies=f"{OURS}\nseed = 5"), "policies.ours.seed must be left out: the seed at the top .*"),
    (text(policies=f"{OURS}\ndim = 5"), "policies.ours.dim must be left out: it follows from world.theta"),
    (
        text(policies=f"{OURS}\nexploration = 0.1"),
        "policies.ours.exploration is not a key of recommended, which has 'policy', 'window', 'half_life', "
        "'floor', 'ceiling', 'limits', 'draws', 'control', 'guard', 'grace', 'activation_timeout', 'attribution', "
        "'reward', 'returns', 'stages', 'stage_prior'",
    ),
    (text(policies=POLICY.replace("OTF", "otf")), "policies.ucb.policy must be .*; did you mean 'OTFLinUCB'?"),
    (
        text(policies=f"{POLICY}\nwidth = 'wide'"),
        "policies.ucb.width must be one of 'exact', 'buffered', 'tight', 'variance'; got 'wide'",
    ),
    (text(policies=f"{POLICY}\nwidht = 'exact'"), "policies.ucb.widht is not a key .*; did you mean 'width'?"),
    (text(policies=f"{POLICY}\ndelta = 2"), "policies.ucb.delta must be a probability .*; got 2.*"),
    (text(policies=f"{POLICY}\ndim = 5"), "policies.ucb.dim must be left out: it follows from world.theta"),
    (text(policies=f"{POLICY}\nseed = 5"), "policies.ucb.seed must be left out: the seed at the top .*"),
    (text(policies=POLICY.replace("10", "-1")), "policies.ucb.window must be at least 0 .*; got -1"),
    (text(policies=POLICY.replace("10", "1.5")), "policies.ucb.window must be a whole number of rounds.*; got 1.5: .*"),
    (
        text(policies=POLICY.replace("10", "'7d'")),
        "policies.ucb.window must be a whole number of rounds, for a simulation has no clock; got '7d': divide .*",
    ),
    (text(policies=POLICY.replace("ucb", "'my ucb'") + "\nx = 1"), 'policies."my ucb".x is not a key of OTFLinUCB.*'),
]


@pytest.mark.parametrize(("source", "message"), REFUSED, ids=[message[:60] for _, message in REFUSED])
def test_refusals_name_the_key_the_rule_and_the_value(source: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(source)
    assert re.fullmatch(message.replace("?", r"\?"), str(caught.value)), str(caught.value)


def test_read_experiment_refuses_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml cannot be read: No such file"):
        experiment_file.read_experiment(tmp_path / "none.toml")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        experiment_file.read_experiment(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"horizon = 5\nruns == 3\n", r"f\.toml is not valid TOML: .*line 2, column 7"),
        (b"horizon = 5\nhorizon = 6\n", r"f\.toml is not valid TOML: .*line 2"),
        (b"horizon = 1" + b"0" * 5000, r"f\.toml is not valid TOML: "),
        (b"# \xff\n", r"f\.toml must be UTF-8 text; byte 2 is not"),
        (b"horizon = 5\n", r"f\.toml: world is missing: an experiment needs it"),
    ],
)
def test_read_experiment_refuses_a_file_that_is_no_experiment(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "f.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        experiment_file.read_experiment(path)
