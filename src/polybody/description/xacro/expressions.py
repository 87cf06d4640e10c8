"""Which Python expressions of a xacro file are evaluated.

xacro evaluates `${…}` and `$(eval …)` with Python's `eval`. It rejects names with two underscores, but does not look
into lambdas and generators: a file could run any code. So every expression is parsed here first, and only
arithmetic, comparisons, choices, calls of xacro's own functions, displays, list comprehensions and f-strings pass. No
name or attribute may begin with an underscore, nor be one that leads to frames, code or formatting by attribute.
"""

from __future__ import annotations

import ast
import re

from polybody.description.limits import EXPRESSION_CHARACTERS
from polybody.errors import InputError

ALLOWED = (
    ast.Expression, ast.Constant, ast.Name, ast.Load, ast.Store, ast.BoolOp, ast.boolop, ast.BinOp, ast.operator,
    ast.UnaryOp, ast.unaryop, ast.Compare, ast.cmpop, ast.IfExp, ast.Call, ast.keyword, ast.Starred, ast.Attribute,
    ast.Subscript, ast.Slice, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp,
    ast.comprehension, ast.JoinedStr, ast.FormattedValue,
)  # fmt: skip
#: Names that lead out of arithmetic: frames and code of generators, classes, formatting that follows attributes.
REFUSED = re.compile(r"_|(gi|cr|ag|f|tb|co|func)_|(mro|format|format_map|type|vars|hash)$")


def require_plain(text: str) -> None:
    """Refuse an expression that does more than compute."""
    if len(text) > EXPRESSION_CHARACTERS:
        raise InputError(f"an expression has {len(text)} characters; at most {EXPRESSION_CHARACTERS} are evaluated")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"{text!r:.80} is not an expression ({error})") from None
    for node in ast.walk(tree):
        if not isinstance(node, ALLOWED):
            raise InputError(f"{text!r:.80} uses {type(node).__name__}; only arithmetic and calls are evaluated")
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if REFUSED.match(name):
            raise InputError(f"{text!r:.80} uses the name {name!r}, which expressions of files may not")


__all__ = ["require_plain"]
