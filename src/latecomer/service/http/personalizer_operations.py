"""The operations of Azure Personalizer's API; the OpenAPI document leaves them out: its own clients describe them."""

from latecomer.service.http.operations import Operation

PERSONALIZER, EVENT = "/personalizer/v1.0", "{event}"
"""The begin of Azure Personalizer's paths, after that of a bandit or alone, and the part that is an event's id."""

RANK = Operation(
    name="rank",
    method="POST",
    path=f"{PERSONALIZER}/rank",
    summary="Rank actions, as Azure Personalizer did.",
    scope="decide",
    gives=None,
    statuses=(201,),
)
REWARD_EVENT = Operation(
    name="rewardEvent",
    method="POST",
    path=f"{PERSONALIZER}/events/{EVENT}/reward",
    summary="Report the reward of an event, as Azure Personalizer took it.",
    scope="convert",
    gives=None,
    statuses=(204,),
)
ACTIVATE_EVENT = Operation(
    name="activateEvent",
    method="POST",
    path=f"{PERSONALIZER}/events/{EVENT}/activate",
    summary="Activate an event, as Azure Personalizer did.",
    scope="decide",
    gives=None,
    statuses=(204,),
)

PERSONALIZER_OPERATIONS = (RANK, REWARD_EVENT, ACTIVATE_EVENT)
