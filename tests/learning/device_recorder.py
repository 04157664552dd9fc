"""What stands between host and device on torch's ``meta`` device, which has shapes and no values.

On it every read of a value raises. A copy to it does not, nor does an operation that mixes in a tensor of the host;
the recorder sees both, as the dispatcher does. What Python makes tensors of before there is an operation
(``torch.tensor(list, device=...)``, an index that is a list), and loops over the rows of a tensor, it sees as the calls
that they are; in lines that no test runs, ``tests/learning/test_device_lint.py`` looks for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

META = torch.device("meta")

VALUES_DECIDE = (
    "_local_scalar_dense",
    "_unique2",
    "equal",
    "is_nonzero",
    "masked_select",
    "nonzero",
    "unique_consecutive",
    "unique_dim",
)
"""Operations whose result on the host, or its shape, depends on values."""


MADE_OF_NUMBERS = ("tensor", "as_tensor", "asarray", "new_tensor", "from_numpy")


def _tensors(values: Any) -> list[Tensor]:
    return [value for value in tree_leaves(values) if isinstance(value, Tensor)]


class _Calls(TorchFunctionMode):
    """Appends to ``offences`` each call that makes a tensor of numbers, or takes the rows of one apart."""

    def __init__(self, offences: list[str]) -> None:
        TorchFunctionMode.__init__(self)
        self._offences = offences

    def __torch_function__(
        self, func: Any, types: Iterable[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = getattr(func, "__name__", "")
        if name in MADE_OF_NUMBERS:
            self._offences.append(f"{name} makes a tensor of numbers")
        if name == "unbind" and args[1:] in ((), (0,)):
            self._offences.append("a loop over the rows of a tensor")
        if name in ("__getitem__", "__setitem__"):
            parts = args[1] if isinstance(args[1], tuple) else (args[1],)
            if any(isinstance(part, list | range | np.ndarray) for part in parts):
                self._offences.append(f"{name} by numbers of the host")
        return func(*args, **(kwargs or {}))


class HostTraffic(TorchDispatchMode):
    """Records each operation within its scope that touches the host.

    Attributes:
        offences: What was found, in words.
        operations: How many operations there were: on a GPU about as many launches, views apart.
    """

    def __init__(self) -> None:
        TorchDispatchMode.__init__(self)
        self.offences: list[str] = []
        self.operations = 0
        self._scopes = ExitStack()

    def __enter__(self) -> HostTraffic:
        self._scopes.enter_context(_Calls(self.offences))
        TorchDispatchMode.__enter__(self)
        return self

    def __exit__(self, *raised: Any) -> None:
        TorchDispatchMode.__exit__(self, *raised)
        self._scopes.close()

    def __torch_dispatch__(
        self, func: Any, types: Iterable[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        self.operations += 1
        name = func.overloadpacket.__name__
        taken = _tensors((args, kwargs))
        if any(tensor.device != META for tensor in taken):
            self.offences.append(f"{func} takes a tensor of the host")
        if name in VALUES_DECIDE:
            self.offences.append(f"{func} depends on values")
        if name in ("index", "index_put", "index_put_", "_index_put_impl_") and any(
            index.dtype in (torch.bool, torch.uint8) for index in _tensors(args[1])
        ):
            self.offences.append(f"{func} is by a mask")
        if name == "repeat_interleave" and kwargs.get("output_size") is None:
            self.offences.append(f"{func} has a length that depends on values")
        given = func(*args, **kwargs)
        if any(tensor.device != META for tensor in _tensors(given)):
            self.offences.append(f"{func} gives a tensor of the host")
        return given


def host_traffic(work: Callable[[], object]) -> list[str]:
    """What ``work`` did between host and device."""
    recorder = HostTraffic()
    with recorder:
        work()
    return recorder.offences
