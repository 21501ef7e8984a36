"""Machine code of policies, made ahead of time."""

import time
from collections.abc import Sequence
from functools import partial
from itertools import chain

from latecomer.errors import InputError, StoreError
from latecomer.policies.base.policy import LinearPolicy
from latecomer.policies.matured_lin_ts import MaturedLinTS
from latecomer.policies.recommended import recommended
from latecomer.policies.registry import policy_class, policy_names
from latecomer.tiers.code_cache import VARIABLE, find_cache_folder, is_writable
from latecomer.tiers.tiered_kernel import VARIABLE as MODE_VARIABLE
from latecomer.tiers.tiered_kernel import Announce, TieredKernel, compile_mode, has_numba
from latecomer.validation import check_integer, suggest

RECOMMENDED = "recommended"


def warm_policies(
    names: Sequence[str], dims: Sequence[int], announce: Announce, *, others: Sequence[TieredKernel] = ()
) -> tuple[str, float]:
    """Compile policies for dimensions, and other kernels; return the folder of the code, and the seconds it took."""
    folder = find_cache_folder()
    if not has_numba():
        raise StoreError("there is no machine code without Numba: pip install numba")
    if compile_mode() == "never":
        raise StoreError(f"{MODE_VARIABLE} is never: unset it to make machine code")
    if folder is None or not is_writable(folder):
        raise StoreError(f"machine code cannot be kept in {folder}: set {VARIABLE} to a folder that can be written")
    began = time.perf_counter()
    policies = [policy for name in names for dim in dims for policy in make_policies(name, dim)]
    kernels = list(dict.fromkeys(chain(others, *(policy.state.code.tiered() for policy in policies))))
    for number, kernel in enumerate(kernels, start=1):
        kernel.compile(partial(_announce_numbered, announce, f"{number} of {len(kernels)}"))
    return str(folder), time.perf_counter() - began


def _announce_numbered(announce: Announce, number: str, text: str) -> None:
    announce(f"{number}: {text}")


def make_policies(name: str, dim: int) -> list[LinearPolicy]:
    """Make the policy of that name with its defaults; "recommended" also as a service has it."""
    dim = check_integer("dim", dim, least=1)
    if name == RECOMMENDED:
        return [recommended(dim, 1), MaturedLinTS(dim, 1, draws=2)]
    if name not in policy_names():
        known = (RECOMMENDED, *policy_names())
        raise InputError(
            f"policy must be one of {', '.join(known)}; got {name!r}{suggest(name, known)}", field="policy"
        )
    made: type = policy_class(name)
    return [made(dim, 1)]
