"""Scalar domains: one spelling of arithmetic for numbers, symbols and expression graphs.

A formulation is written once over a `Domain`. Its arrays are plain `numpy` arrays, of dtype float64 or complex128 for
numbers, and of dtype object for SymPy expressions, CasADi `SX` scalars, mpmath numbers and jets. The rules that keep
one text valid for all of them:

- constants enter by `domain.const` or `domain.array`, fresh arrays by `domain.zeros` or `domain.eye`;
- functions are the domain's (`domain.sin(x)`), never numpy's, and act on scalars;
- a choice is `domain.where(domain.less(a, b), x, y)`, never an `if` on a value that may be symbolic.

In the `SX` domain a variable scalar is a `graph.Node` and constants stay Python floats inside object arrays, so that
arithmetic on known zeros and ones never reaches the expression graph.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from fractions import Fraction
from typing import Any

import numpy as np

from polybody.algebra.graph import LEAF, Node, binary, choice, express, leaf, number, unary

Scalar = Any
Array = np.ndarray


class Domain(ABC):
    """Arithmetic of one kind of scalar. `dtype` is the dtype of its arrays."""

    name: str
    dtype: Any = object
    #: Below this θ² the truncated series of rotations are exact to the domain's precision; above it their closed forms
    #: lose no digits that matter, because each coefficient multiplies a power of θ.
    series_below: float = 0.04

    @abstractmethod
    def const(self, value: Any) -> Scalar:
        """The scalar of this domain that represents the number `value`."""

    @abstractmethod
    def sin(self, x: Scalar) -> Scalar: ...

    @abstractmethod
    def cos(self, x: Scalar) -> Scalar: ...

    @abstractmethod
    def sqrt(self, x: Scalar) -> Scalar: ...

    @abstractmethod
    def atan2(self, y: Scalar, x: Scalar) -> Scalar: ...

    @abstractmethod
    def tanh(self, x: Scalar) -> Scalar: ...

    @abstractmethod
    def exp(self, x: Scalar) -> Scalar: ...

    @abstractmethod
    def log(self, x: Scalar) -> Scalar: ...

    @abstractmethod
    def less(self, a: Scalar, b: Scalar) -> Any:
        """The condition a < b, for `where`."""

    @abstractmethod
    def where(self, condition: Any, yes: Scalar, no: Scalar) -> Scalar:
        """`yes` if the condition holds, else `no`; both are evaluated, so both must be finite."""

    def is_zero(self, x: Scalar) -> bool:
        """True when x is known to be zero without knowing any variable's value."""
        return bool(x == 0)

    def is_constant(self, x: Scalar) -> bool:
        """True when x depends on no variable."""
        return True

    def probe(self, array: Array, rng: np.random.Generator) -> Array:
        """The entries as floats, at random values of their variables (the same for all entries)."""
        return np.array([complex(x).real for x in array.ravel()]).reshape(array.shape)

    def array(self, values: Any) -> Array:
        """An array of this domain from nested sequences of numbers or of this domain's scalars."""
        source = np.asarray(values, dtype=object)
        result = np.empty(source.shape, dtype=self.dtype)
        for index in np.ndindex(source.shape):
            result[index] = self._enter(source[index])
        return result

    def _enter(self, value: Any) -> Scalar:
        return self.const(value) if isinstance(value, (int, float, np.number, Fraction)) else value

    def once(self, what: Hashable, of: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """What `make()` makes of these very objects; a domain that remembers makes it once (`shared`)."""
        return make()

    def zeros(self, *shape: int) -> Array:
        return np.full(shape, self.const(0), dtype=self.dtype)

    def eye(self, n: int) -> Array:
        result = self.zeros(n, n)
        for i in range(n):
            result[i, i] = self.const(1)
        return result

    def solve(self, matrix: Array, right: Array) -> Array:
        """Solve matrix · x = right by elimination without pivoting (for symmetric positive definite matrices)."""
        n = matrix.shape[0]
        a, b = matrix.copy(), right.reshape(n, *(right.shape[1:] or (1,))).copy()
        for k in range(n):
            for i in range(k + 1, n):
                if self.is_zero(a[i, k]):
                    continue
                factor = a[i, k] / a[k, k]
                a[i, k + 1 :] = a[i, k + 1 :] - factor * a[k, k + 1 :]
                b[i] = b[i] - factor * b[k]
        for k in reversed(range(n)):
            for j in range(k + 1, n):
                if not self.is_zero(a[k, j]):
                    b[k] = b[k] - a[k, j] * b[j]
            b[k] = b[k] / a[k, k]
        return b.reshape(right.shape)

    def solve_symmetric(self, matrix: Array, right: Array) -> Array:
        """`solve` of a symmetric positive definite matrix, of which the upper triangle is read."""
        return self.solve(matrix, right)

    def __repr__(self) -> str:
        return f"<domain {self.name}>"


class FloatDomain(Domain):
    """float64: the reference that tests and small problems use."""

    name = "float64"
    dtype = np.float64

    def const(self, value: Any) -> float:
        return float(value)

    def array(self, values: Any) -> Array:
        return np.array(values, dtype=np.float64)

    def zeros(self, *shape: int) -> Array:
        return np.zeros(shape)

    def eye(self, n: int) -> Array:
        return np.eye(n)

    # As machine code does it, infinity comes out as NaN; math.sin would raise.
    def sin(self, x: float) -> float:
        return math.sin(x) if math.isfinite(x) else math.nan

    def cos(self, x: float) -> float:
        return math.cos(x) if math.isfinite(x) else math.nan

    def sqrt(self, x: float) -> float:
        return math.sqrt(x)

    def atan2(self, y: float, x: float) -> float:
        return math.atan2(y, x)

    def tanh(self, x: float) -> float:
        return math.tanh(x)

    def exp(self, x: float) -> float:
        return math.exp(x)

    def log(self, x: float) -> float:
        return math.log(x)

    def less(self, a: float, b: float) -> bool:
        return a < b

    def where(self, condition: bool, yes: float, no: float) -> float:
        return yes if condition else no

    def solve(self, matrix: Array, right: Array) -> Array:
        return np.linalg.solve(matrix, right)


class ComplexDomain(Domain):
    """complex128, for complex-step derivatives: comparisons look at the real part."""

    name = "complex128"
    dtype = np.complex128

    def const(self, value: Any) -> complex:
        return complex(value)

    def array(self, values: Any) -> Array:
        return np.array(values, dtype=np.complex128)

    def sin(self, x: complex) -> complex:
        return complex(np.sin(x))

    def cos(self, x: complex) -> complex:
        return complex(np.cos(x))

    def sqrt(self, x: complex) -> complex:
        return complex(np.sqrt(complex(x)))

    def atan2(self, y: complex, x: complex) -> complex:
        # First-order extension off the real axis: exact for the tiny imaginary parts of a complex step.
        value = math.atan2(y.real, x.real)
        return value + 1j * (x.real * y.imag - y.real * x.imag) / (x.real**2 + y.real**2)

    def tanh(self, x: complex) -> complex:
        return complex(np.tanh(x))

    def exp(self, x: complex) -> complex:
        return complex(np.exp(x))

    def log(self, x: complex) -> complex:
        return complex(np.log(complex(x)))

    def less(self, a: complex, b: complex) -> bool:
        return complex(a).real < complex(b).real

    def where(self, condition: bool, yes: complex, no: complex) -> complex:
        return yes if condition else no

    def solve(self, matrix: Array, right: Array) -> Array:
        return np.linalg.solve(matrix, right)


class SymbolDomain(Domain):
    """SymPy: the model a person reads. Decimal numbers become the rationals their shortest decimal form states."""

    name = "sympy"

    def __init__(self) -> None:
        import sympy

        self._sympy = sympy

    def const(self, value: Any) -> Any:
        sympy = self._sympy
        if isinstance(value, sympy.Basic):
            return value
        if isinstance(value, Fraction):
            return sympy.Rational(value.numerator, value.denominator)
        number = float(value)
        if number.is_integer():
            return sympy.Integer(int(number))
        return sympy.Rational(repr(number))

    def _enter(self, value: Any) -> Any:
        return self._sympy.sympify(value) if isinstance(value, self._sympy.Basic) else self.const(value)

    def sin(self, x: Any) -> Any:
        return self._sympy.sin(x)

    def cos(self, x: Any) -> Any:
        return self._sympy.cos(x)

    def sqrt(self, x: Any) -> Any:
        return self._sympy.sqrt(x)

    def atan2(self, y: Any, x: Any) -> Any:
        return self._sympy.atan2(y, x)

    def tanh(self, x: Any) -> Any:
        return self._sympy.tanh(x)

    def exp(self, x: Any) -> Any:
        return self._sympy.exp(x)

    def log(self, x: Any) -> Any:
        return self._sympy.log(x)

    def less(self, a: Any, b: Any) -> Any:
        return self._sympy.Lt(a, b)

    def where(self, condition: Any, yes: Any, no: Any) -> Any:
        return self._sympy.Piecewise((yes, condition), (no, True))

    def is_zero(self, x: Any) -> bool:
        return bool(x == 0)

    def is_constant(self, x: Any) -> bool:
        return bool(self._sympy.sympify(x).is_number)

    def probe(self, array: Array, rng: np.random.Generator) -> Array:
        entries = [self._sympy.sympify(x) for x in array.ravel()]
        names = sorted(set().union(*(x.free_symbols for x in entries)), key=str)
        evaluate = self._sympy.lambdify(names, entries, modules="math", cse=True)
        return np.array(evaluate(*rng.uniform(0.4, 1.6, size=len(names))), dtype=float).reshape(array.shape)


class FoldingDomain(Domain):
    """Scalars that fold what is known: numbers stay Python floats in arrays of objects."""

    def array(self, values: Any) -> Array:
        if isinstance(values, np.ndarray) and values.dtype == np.float64:
            return values.astype(object)  # Python's floats
        return super().array(values)

    def zeros(self, *shape: int) -> Array:
        return np.zeros(shape).astype(object)

    def eye(self, n: int) -> Array:
        return np.eye(n).astype(object)


class GraphDomain(FoldingDomain):
    """Expression graphs of `Node`s, which kernels compile and CasADi reads. Known numbers stay Python floats."""

    name = "casadi"

    def __init__(self) -> None:
        import casadi

        self._casadi = casadi

    def const(self, value: Any) -> Any:
        return value if isinstance(value, Node) else float(value)

    def _enter(self, value: Any) -> Any:
        return leaf(value) if isinstance(value, self._casadi.SX) else super()._enter(value)

    def sin(self, x: Any) -> Any:
        return unary("OP_SIN", x) if isinstance(x, Node) else math.sin(x)

    def cos(self, x: Any) -> Any:
        return unary("OP_COS", x) if isinstance(x, Node) else math.cos(x)

    def sqrt(self, x: Any) -> Any:
        return unary("OP_SQRT", x) if isinstance(x, Node) else math.sqrt(x)

    def atan2(self, y: Any, x: Any) -> Any:
        if not isinstance(x, Node) and not isinstance(y, Node):
            return math.atan2(y, x)
        return binary("OP_ATAN2", y, x)

    def tanh(self, x: Any) -> Any:
        return unary("OP_TANH", x) if isinstance(x, Node) else math.tanh(x)

    def exp(self, x: Any) -> Any:
        return unary("OP_EXP", x) if isinstance(x, Node) else math.exp(x)

    def log(self, x: Any) -> Any:
        return unary("OP_LOG", x) if isinstance(x, Node) else math.log(x)

    def less(self, a: Any, b: Any) -> Any:
        return a < b

    def where(self, condition: Any, yes: Any, no: Any) -> Any:
        if isinstance(condition, (bool, np.bool_)):
            return yes if condition else no
        return choice(condition, yes, no)

    def is_zero(self, x: Any) -> bool:
        return not isinstance(x, Node) and x == 0

    def is_constant(self, x: Any) -> bool:
        return not isinstance(x, Node)

    def solve_symmetric(self, matrix: Array, right: Array) -> Array:
        """By L D Lᵀ: half the operations of `solve`, which does not know that rows and columns are alike."""
        n = len(matrix)
        a, b = matrix.tolist(), right.tolist()
        for k in range(n):
            row = a[k]
            for i in range(k + 1, n):
                if self.is_zero(row[i]):
                    continue
                factor, below = row[i] / row[k], a[i]
                for j in range(i, n):
                    if not self.is_zero(row[j]):
                        below[j] = below[j] - factor * row[j]
                b[i] = b[i] - factor * b[k]
        for k in reversed(range(n)):
            for j in range(k + 1, n):
                if not self.is_zero(a[k][j]):
                    b[k] = b[k] - a[k][j] * b[j]
            b[k] = b[k] / a[k][k]
        return np.array(b, dtype=object)

    def probe(self, array: Array, rng: np.random.Generator) -> Array:
        column = self.column(array)
        names = self._casadi.symvar(column)
        evaluate = self._casadi.Function("probe", names, [column])
        return np.array(evaluate(*rng.uniform(0.4, 1.6, size=len(names))), dtype=float).reshape(array.shape)

    def variables(self, name: str, n: int) -> tuple[Any, Array]:
        """A CasADi column of n fresh symbols, and the same as an object array of nodes."""
        column = self._casadi.SX.sym(name, n)
        nodes = np.empty(n, dtype=object)
        for i, symbol in enumerate(column.elements()):  # not `scalars`, which asks of each whether it is a constant
            nodes[i] = Node(LEAF, sx=symbol)
        return column, nodes

    def scalars(self, column: Any) -> Array:
        """The entries of a CasADi column as an array of nodes."""
        result = np.empty(column.shape[0], dtype=object)
        # `vertsplit` spends longer on choosing an overload, during which interrupts are lost.
        for i, element in enumerate(column.elements() if column.is_dense() else self._casadi.vertsplit(column)):
            result[i] = leaf(element)
        return result

    def column(self, array: Any) -> Any:
        """A dense CasADi column of the entries in row-major order."""
        entries = np.asarray(array, dtype=object).ravel().tolist()
        express(entries)
        columns = [x.sx if isinstance(x, Node) else number(float(x)) for x in entries]
        return self._casadi.densify(self._casadi.vertcat(*columns)) if columns else self._casadi.SX.zeros(0, 1)


class MpmathDomain(Domain):
    """mpmath at its current precision, for references of many digits."""

    name = "mpmath"
    series_below = 1e-6  # to some 40 digits

    def __init__(self) -> None:
        import mpmath

        self._mpmath = mpmath

    def const(self, value: Any) -> Any:
        return self._mpmath.mpf(value)

    def sin(self, x: Any) -> Any:
        return self._mpmath.sin(x)

    def cos(self, x: Any) -> Any:
        return self._mpmath.cos(x)

    def sqrt(self, x: Any) -> Any:
        return self._mpmath.sqrt(x)

    def atan2(self, y: Any, x: Any) -> Any:
        return self._mpmath.atan2(y, x)

    def tanh(self, x: Any) -> Any:
        return self._mpmath.tanh(x)

    def exp(self, x: Any) -> Any:
        return self._mpmath.exp(x)

    def log(self, x: Any) -> Any:
        return self._mpmath.log(x)

    def less(self, a: Any, b: Any) -> bool:
        return a < b

    def where(self, condition: bool, yes: Any, no: Any) -> Any:
        return yes if condition else no


FLOAT = FloatDomain()
COMPLEX = ComplexDomain()

_LAZY: dict[str, Domain] = {}


def domain(name: str) -> Domain:
    """The domain of that name: float64, complex128, sympy, casadi or mpmath. Heavy packages load on first use."""
    factories = {
        "float64": lambda: FLOAT,
        "complex128": lambda: COMPLEX,
        "sympy": SymbolDomain,
        "casadi": GraphDomain,
        "mpmath": MpmathDomain,
    }
    if name not in factories:
        raise KeyError(f"no scalar domain {name!r}; available: {', '.join(sorted(factories))}")
    if name not in _LAZY:
        _LAZY[name] = factories[name]()
    return _LAZY[name]


__all__ = [
    "COMPLEX",
    "FLOAT",
    "Array",
    "ComplexDomain",
    "Domain",
    "FloatDomain",
    "FoldingDomain",
    "GraphDomain",
    "MpmathDomain",
    "Scalar",
    "SymbolDomain",
    "domain",
]
