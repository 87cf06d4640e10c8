"""Methods of a class that answer single states by machine code, with no Python code in between.

    class Model:
        __slots__ = ("__dict__", "__weakref__", "_lone_energy")

        def energy(self, q, v, *, out=None): ...         # the whole truth: options, batches, errors

    plain = Model.energy
    ...
    model._lone_energy = kernel.lone                     # when a kernel of an instance is known
    fast_method(Model, "energy", "_lone_energy", plain)  # once for the class; again does nothing

`fast_method` puts a method descriptor in the place of the Python function, as methods of builtin types are. A call with
positional arguments that are plain arrays of one state (or a few) goes by what the instance has in its slot; every
other call goes to the Python function, unchanged. As with any method, a subclass may override it, `mock.patch.object`
may replace it on the class and on an instance (which needs a `__dict__`), and `inspect.signature` and `help` know its
parameters. Annotations stay with the Python function, and mocks made with `autospec` check no arguments, as for
builtins.

Their machine code is the same for all; the first time on a machine it is compiled in the background (`background`).

Descriptors are CPython's (`PyDescr_NewMethod`); where kernels cannot be called alone, the Python function stays.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
from collections.abc import Callable
from types import FunctionType

from polybody.errors import PolybodyError
from polybody.kernels import background, lone_code, machine, runtime
from polybody.kernels.locks import Lock
from polybody.kernels.pool import address
from polybody.kernels.programs import Made, digest, is_kept, kept
from polybody.kernels.target import host

_lock = Lock()
_waiting: dict[tuple[type, str], Callable[[], None]] = {}  # methods that become fast once code is there
_taken: list[object] = []  # for each cell what it refers to, for ever: a class may keep its methods


def fast_method(owner: type, name: str, slot: str, function: FunctionType) -> None:
    """Let `owner.name` run kernels: see the module. Does nothing unless `owner.name` is `function` itself just now."""
    with _lock:
        if owner.__dict__.get(name) is not function or not runtime.can_be_called_alone():
            return
        if len(_taken) == lone_code.METHODS:
            raise PolybodyError(
                f"{owner.__name__}.{name}: {len(_taken)} methods are fast already, and no more can be"
            )
        if background.tier() != "auto" or _is_made():
            _put(owner, name, slot, function)
            return
        _waiting[owner, name] = lambda: _put(owner, name, slot, function)
        if len(_waiting) == 1:
            background.submit("methods", _put_all)


def _put_all(between: Callable[[], None]) -> None:
    """Once their code is compiled."""
    between()
    _code()
    with _lock:
        while _waiting:
            _waiting.popitem()[1]()


def _put(owner: type, name: str, slot: str, function: FunctionType) -> None:
    with _lock:
        if owner.__dict__.get(name) is not function or len(_taken) == lone_code.METHODS:
            return
        k, code = len(_taken), _code()
        document = f"{name}{_text_signature(function)}\n--\n\n{function.__doc__ or ''}"
        method = runtime.MethodDef(name.encode(), code.addresses[f"method_{k}"], runtime.FASTCALL, document.encode())
        facts = {
            "slot": runtime.slot_offset(owner, slot),
            "function": id(function),
            "lone_type": id(runtime.Lone),
            "vectorcall": address(ctypes.pythonapi.PyObject_Vectorcall),
        }
        where = ctypes.CFUNCTYPE(ctypes.c_void_p)(code.addresses["cells_at"])() or 0
        cells = (ctypes.c_int64 * (lone_code.METHODS * len(facts))).from_address(where)
        cells[k * len(facts) : (k + 1) * len(facts)] = [facts[key] for key in lone_code.CELL]
        _taken.append((owner, function, method))
        create = ctypes.pythonapi.PyDescr_NewMethod
        create.restype, create.argtypes = ctypes.py_object, [ctypes.py_object, ctypes.c_void_p]
        setattr(owner, name, create(owner, ctypes.addressof(method)))


def _text_signature(function: FunctionType) -> str:
    """The parameters as C's methods state theirs, which is what `inspect.signature` reads of them."""
    parameters = list(inspect.signature(function).parameters.values())
    many = [p.name for p in parameters if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if many or len(parameters) > lone_code.MOST_ARGUMENTS:
        raise PolybodyError(f"{function.__qualname__} takes {many or len(parameters)}; expected a few named parameters")
    for p in parameters:
        if p.default is not p.empty and type(p.default) not in (type(None), bool, int, float, str):
            raise PolybodyError(
                f"{function.__qualname__}: default of {p.name} is {p.default!r}; expected a number, a string or None"
            )
    plain = inspect.Signature([p.replace(annotation=p.empty) for p in parameters])
    return str(plain).replace("(", "($", 1)


def _is_made() -> bool:
    """Whether the code need not be compiled."""
    return bool(_code.cache_info().currsize) or is_kept(_title())


def _title() -> str:
    return digest("methods", str(runtime.slot_offset(runtime.Lone, "plan")), host(), [])


@functools.cache
def _code() -> machine.Loaded:
    target, plan_at = host(), runtime.slot_offset(runtime.Lone, "plan")
    text = lone_code.methods_text(target.triple, plan_at)
    code, _ = kept(_title(), "methods", lambda: Made(text, target))
    return machine.Loaded(code, ["cells_at", *(f"method_{k}" for k in range(lone_code.METHODS))])


__all__ = ["fast_method"]
