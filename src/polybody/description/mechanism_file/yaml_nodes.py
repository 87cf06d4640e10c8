"""YAML as a tree of nodes that know their lines, and nothing else: no tags, no objects, no surprises.

PyYAML's event stream is turned into nodes here rather than by its loaders, because a mechanism file comes from anyone:
explicit tags raise an error (so no Python object is ever built), nesting and the number of nodes are bounded, duplicate
keys raise an error. An alias shares its node, but counts as all the values that it represents, because whoever reads
the nodes meets them all again. Scalars stay text; what a scalar means is decided by the place it stands in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from polybody.description.limits import YAML_DEPTH, YAML_NODES
from polybody.errors import InputError
from polybody.late import dataclass, field


@dataclass(eq=False)
class Scalar:
    text: str
    line: int


@dataclass(eq=False)
class Sequence:
    line: int
    items: list[Node] = field(default_factory=list)


@dataclass(eq=False)
class Mapping:
    line: int
    pairs: dict[str, tuple[int, Node]] = field(default_factory=dict)  # key: (its line, value)


Node = Scalar | Sequence | Mapping


def describe(node: Node) -> str:
    """What a node is, for messages."""
    if isinstance(node, Scalar):
        return f"{node.text!r:.60}" if node.text else "nothing"
    return "a list" if isinstance(node, Sequence) else "a mapping"


def plain(node: Node) -> Any:
    """A node as nested dicts, lists and texts."""
    if isinstance(node, Scalar):
        return node.text
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    return {key: plain(value) for key, (_, value) in node.pairs.items()}


def compose(text: str, where: str) -> Node:
    """The one document of a YAML text; `where` names the file in messages."""
    import yaml

    try:
        return _Composer(where).compose(_events(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark is not None else ""
        reason = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        raise InputError(f"{where}{line}: not valid YAML: {reason}; is the file cut off or mistyped here?") from None


def _events(text: str) -> Iterator[Any]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml where the wheel has it
    return yaml.parse(text, Loader=loader)


class _Composer:
    """Puts events together with an explicit stack, so that depth is bounded by us and not by the interpreter."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.anchors: dict[str, Node] = {}
        self.extent: dict[int, tuple[int, int]] = {}  # values and levels below each collection, by its id
        self.stack: list[tuple[Sequence | Mapping, Any]] = []  # a mapping waits with its pending key
        self.opened: list[tuple[int, int]] = []  # for each open collection: values before it, levels met in it
        self.root: Node | None = None
        self.count = 0

    def compose(self, events: Iterator[Any]) -> Node:
        import yaml

        for event in events:
            if isinstance(event, yaml.AliasEvent):
                self._alias(event)
            elif isinstance(event, yaml.NodeEvent):
                self._start(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                node, pending = self.stack.pop()
                if pending is not None:
                    raise InputError(f"{self._at(node.line)}: key {pending[0]!r} has no value")
                before, levels = self.opened.pop()
                self.extent[id(node)] = self.count - before, levels + 1
                self._deepen(levels + 1)
        if self.root is None:
            raise InputError(f"{self.where}: the file is empty")
        return self.root

    def _at(self, line: int) -> str:
        return f"{self.where}:{line}"

    def _alias(self, event: Any) -> None:
        line = event.start_mark.line + 1
        node = self.anchors.get(event.anchor)
        if node is None:
            raise InputError(f"{self._at(line)}: no anchor &{event.anchor} stands above this alias")
        if any(node is open_node for open_node, _ in self.stack):
            raise InputError(f"{self._at(line)}: *{event.anchor} contains itself")
        values, levels = self.extent.get(id(node), (0, 0))
        self.count += values
        self._refuse_deep(len(self.stack) + levels, line)
        self._deepen(levels)
        self._place(node, line)

    def _deepen(self, levels: int) -> None:
        if self.opened:
            before, met = self.opened[-1]
            self.opened[-1] = before, max(met, levels)

    def _refuse_deep(self, levels: int, line: int) -> None:
        if levels > YAML_DEPTH:
            raise InputError(f"{self._at(line)}: nested more than {YAML_DEPTH} deep; no mechanism file needs that")

    def _start(self, event: Any) -> None:
        import yaml

        line = event.start_mark.line + 1
        if event.tag is not None:
            raise InputError(
                f"{self._at(line)}: the tag {event.tag!r} is not allowed; a mechanism file holds plain text, numbers, "
                "lists and mappings only"
            )
        if isinstance(event, yaml.ScalarEvent):
            node: Node = Scalar(event.value, line)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = Sequence(line)
        else:
            node = Mapping(line)
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        self._place(node, line)
        if not isinstance(node, Scalar):
            self.stack.append((node, None))
            self.opened.append((self.count, 0))
            self._refuse_deep(len(self.stack), line)

    def _place(self, node: Node, line: int) -> None:
        self.count += 1
        if self.count > YAML_NODES:
            raise InputError(
                f"{self._at(line)}: more than {YAML_NODES} values (each alias counts as all it expands to); this is "
                "not a mechanism file"
            )
        if not self.stack:
            if self.root is not None:
                raise InputError(f"{self._at(line)}: a second document starts; a file holds one mechanism")
            self.root = node
            return
        parent, pending = self.stack[-1]
        if isinstance(parent, Sequence):
            parent.items.append(node)
        elif pending is None:
            if not isinstance(node, Scalar):
                raise InputError(f"{self._at(line)}: a key must be a name, not {describe(node)}")
            self.stack[-1] = (parent, (node.text, line))
        else:
            key, key_line = pending
            if key in parent.pairs:
                first = parent.pairs[key][0]
                raise InputError(f"{self._at(key_line)}: {key!r} is given twice (first at line {first})")
            parent.pairs[key] = (key_line, node)
            self.stack[-1] = (parent, None)


__all__ = ["Mapping", "Node", "Scalar", "Sequence", "compose", "describe", "plain"]
