"""Expected arrivals equal a count of every decision by itself; a silence is found, and ends."""

import math

import numpy as np

from latecomer.service.bandit.monitor.arrivals import HALF_LIFE, ArrivalModel
from latecomer.service.bandit.monitor.grid import CELLS, DAY, WEEK, Grid
from latecomer.service.bandit.monitor.silence import FALLEN, SLACK, Silence


def test_expected_arrivals_equal_a_count_of_each_decision() -> None:
    cells, rng = 6, np.random.default_rng(1)
    model = ArrivalModel(cells)
    decided: list[int] = []
    arrived: list[tuple[int, int]] = []
    for cell in range(60):
        count = int(rng.integers(0, 5))
        decided += [cell] * count
        model.open[0] += count
        coming = [number for number, begin in enumerate(decided) if 0 <= cell - begin <= cells and rng.random() < 0.1]
        rates = []
        for age in range(cells + 1):
            weights = [2.0 ** (-(cell - 1 - past) / (HALF_LIFE * cells)) for past in range(cell)]
            exposed = sum(weights[past] * decided.count(past - age) for past in range(cell))
            came = sum(weights[past] for past, begin in arrived if past - begin == age)
            rates.append(came / exposed if exposed else 0.0)
        expected = sum(rates[age] * decided.count(cell - age) for age in range(cells + 1))
        ages = model.find_ages(np.array(coming, np.int64) + 1, len(decided))
        assert ages.tolist() == [cell - decided[number] for number in coming]
        assert math.isclose(model.complete_cell(ages), expected, rel_tol=1e-9, abs_tol=1e-12)
        arrived += [(cell, decided[number]) for number in coming]
        model.shift()
    assert arrived


def test_a_window_has_a_thousand_cells_at_most_and_looks_once_a_window() -> None:
    week = Grid(WEEK, in_rounds=False)
    assert (week.cells, week.width, week.look) == (CELLS, WEEK // CELLS, CELLS)
    minute = Grid(60_000_000, in_rounds=False)
    assert (minute.cells, minute.width, minute.look) == (60, 1_000_000, DAY // 1_000_000)
    rounds = Grid(500, in_rounds=True)
    assert (rounds.cells, rounds.width, rounds.look * rounds.width) == (8, 64, 10_048)
    assert [Grid(0, in_rounds=in_rounds).cells for in_rounds in (False, True)] == [1, 1]


def test_the_threshold_bounds_false_alarms_to_one_in_a_hundred_weeks() -> None:
    assert math.isclose(Grid(WEEK, in_rounds=False).threshold(1, 1), math.log(100 * CELLS))
    in_rounds = Grid(500, in_rounds=True)
    assert math.isclose(in_rounds.threshold(50, WEEK // 2), math.log(100 * 100))


def step(silence: Silence, cell: int, expected: float, arrived: int) -> None:
    silence.add(cell, 100 * cell, expected, arrived, least=10.0, oldest_peak=cell - 1000)


def test_a_silence_rings_when_enough_is_missing_and_ends_with_a_few_arrivals() -> None:
    silence, cell = Silence(), 0
    for cell in range(200):
        step(silence, cell, 1.0, 1)
        assert not silence.is_ringing
    missing = math.ceil(10.0 / (SLACK - FALLEN))
    for number in range(1, missing + 1):
        step(silence, cell + number, 1.0, 0)
        assert silence.is_ringing == (number == missing)
    assert (silence.since, silence.since_stamp, silence.expected, silence.arrived) == (200, 20_000, missing, 0)
    for number in range(1000):
        step(silence, 1000 + number, 1.0, 0)  # a long outage does not make the alarm stay longer
    needed = math.ceil((10.0 / 2 + 3.0) / (math.log(SLACK / FALLEN) - (SLACK - FALLEN)))  # to half the threshold
    for number in range(1, needed + 1):
        step(silence, 3000 + number, 1.0, 1)
        assert silence.is_ringing == (number < needed)
    assert needed == 5


def test_a_rhythm_is_learnt_after_its_second_time_and_one_outage_is_not() -> None:
    silence, rang = Silence(), []
    for day in range(6):  # a feed that reports once a day: 24 cells with 10 expected in each
        rang.append(False)
        for hour in range(24):
            step(silence, 24 * day + hour, 10.0, 240 if hour == 23 else 0)
            rang[-1] = rang[-1] or silence.is_ringing
    assert rang == [True, True, False, False, False, False]
    cell = 24 * 6
    while not silence.is_ringing:
        step(silence, cell, 10.0, 0)
        cell += 1
    assert 40 < cell - 24 * 6 <= 48  # two days without a report
