"""A shop that chooses a banner for every visitor, and learns of a purchase days later, or never.

One to five visitors in a hundred buy; half of the purchases come after more than a day and a half, one in twenty-five
after the window has closed. Half of the visitors are a control group and are shown any banner: what the policy earns is
measured against them. `python examples/shop.py` plays twelve weeks in seconds; `python examples/shop.py 4` plays four.
"""

import heapq
import sys
from datetime import UTC, datetime, timedelta

import numpy as np

import latecomer as lc

WEEKS = int(sys.argv[1]) if len(sys.argv) > 1 else 12
VISITORS_A_DAY, CONTROL_SHARE, SEED = 1000, 0.5, 0
RATES = {  # the share of visitors that buys, which the shop does not know
    "new visitors: free shipping": 0.025,
    "new visitors: a tenth off": 0.010,
    "returning visitors: free shipping": 0.020,
    "returning visitors: a tenth off": 0.030,
    "returning visitors: a gift": 0.050,
}
ROWS = np.eye(len(RATES))  # a feature for each banner and kind of visitor; yours may have any others
NEW, RETURNING = ROWS[:2], ROWS[2:]


def play() -> np.ndarray:
    """Visitors come, purchases trickle in; for every visitor the week, the group, the banner and whether it sold."""
    rng, rates, start = np.random.default_rng(SEED), np.array(list(RATES.values())), datetime(2026, 1, 5, tzinfo=UTC)
    policy = lc.recommended(dim=len(RATES), window=timedelta(days=14), seed=SEED)
    on_their_way: list[tuple[datetime, int]] = []
    visits = []
    for hour in np.sort(rng.uniform(0, WEEKS * 7 * 24, WEEKS * 7 * VISITORS_A_DAY)):
        now = start + timedelta(hours=hour)
        while on_their_way and on_their_way[0][0] <= now:  # conversions that have arrived
            at, round = heapq.heappop(on_their_way)
            policy.convert(round, at=at)  # LATE after two weeks, and then nothing changes

        offers = NEW if rng.random() < 0.6 else RETURNING
        in_control = rng.random() < CONTROL_SHARE
        decision = None if in_control else policy.decide(offers, at=now)
        row = offers[rng.integers(len(offers)) if decision is None else decision.index]
        sold = rng.random() < row @ rates
        if sold and decision is not None:
            heapq.heappush(on_their_way, (now + timedelta(days=rng.lognormal(np.log(1.5), 1.3)), decision.round))
        visits.append((hour // (24 * 7), in_control, row.argmax(), sold))
    return np.array(visits, int)


week, in_control, banner, sold = play().T
print("sales in a thousand visitors\nweeks      recommended  control")
for first in range(0, WEEKS, 2):
    ours, control = (1000 * sold[(week // 2 == first // 2) & (in_control == group)].mean() for group in (False, True))
    print(f"{first + 1:2} and {first + 2:2}  {ours:11.1f}  {control:7.1f}")
print("\nshown in the last two weeks")
for k, name in enumerate(RATES):
    same_kind = (banner < len(NEW)) == (k < len(NEW))
    print(f"{name:34} {(banner == k)[same_kind & (in_control == 0) & (week >= WEEKS - 2)].mean():4.0%}")
ours, control = sold[in_control == 0], sold[in_control == 1]
print(
    f"\n{ours.sum()} sales to {len(ours)} visitors; at the control group's rate there would have been "
    f"{len(ours) * control.mean():.0f}, give or take {len(ours) * control.std() / len(control) ** 0.5:.0f}"
)
