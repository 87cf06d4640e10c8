"""The loops that multiply the tables of a `Factored` tape, and the places of their vectors.

A tile is R rows of A times C columns of B with one support: R C sums stay in registers, and each step of its loop reads
R vectors of A and C of B for R C products, which is what a processor can load meanwhile. So that they are read one
behind the other, the straight line puts A in panels of R rows, (l, row) within each, and B in panels of the columns of
a tile, (l ∈ S_j, column). The last rows of A overlap those before where R does not divide n.

All tiles of one panel of A are done before the next: it stays in the first cache, and B passes by in order. A table
holds for each tile the length of its support, and how far from the panel's begin each l of it lies. Results have places
of their own, used again for the next product when they are written (`table_rows`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from polybody.kernels.code import Code
from polybody.kernels.factored import Factored
from polybody.kernels.table_rows import TableRows, table_text
from polybody.kernels.tape import FROM
from polybody.kernels.target import Target
from polybody.late import dataclass

Support = tuple[int, ...]


@dataclass(frozen=True)
class Tile:
    """Columns of B that are computed together, the place of their panel of B and of their results in a panel of P."""

    columns: tuple[int, ...]
    support: Support
    given: int
    result: int


def tile_sizes(n: int, held: int) -> tuple[int, int]:
    """(R, most C) for matrices of order n, where registers hold so many vectors beside one for A."""
    columns = 4 if held > 16 else 3
    most = (held + 1 - columns) // columns
    rows = min(range(min(3, most), min(6, most) + 1), key=lambda R: (-(-n // R) * R, -R))
    return min(rows, n), columns


def _tiles(supports: Sequence[Support], rows: int, most: int) -> list[Tile]:
    """By their number of columns, those of one support as alike as can be."""
    groups: dict[Support, list[int]] = {}
    for j, support in enumerate(supports):
        if support:
            groups.setdefault(support, []).append(j)
    found: list[tuple[tuple[int, ...], Support]] = []
    for support, columns in groups.items():
        count = -(-len(columns) // most)
        cuts = [len(columns) * k // count for k in range(count + 1)]
        found += [(tuple(columns[lo:hi]), support) for lo, hi in pairwise(cuts)]
    tiles, given, result = [], 0, 0
    for columns, support in sorted(found, key=lambda one: -len(one[0])):
        tiles.append(Tile(columns, support, given, result))
        given += len(columns) * len(support)
        result += len(columns) * rows
    return tiles


class FactoredRows(TableRows):
    """Rows of products, and of A."""

    def __init__(self, factored: Factored, target: Target) -> None:
        n, self.factored = factored.order, factored
        self.rows, most = tile_sizes(n, target.held)
        self.panels = [*range(0, n - self.rows, self.rows), n - self.rows]
        self.tiles = [_tiles(factored.supports(k), self.rows, most) for k in range(len(factored.right))]
        self.homes: list[dict[int, list[int]]] = [self._home_of_A()]
        count = len(self.panels) * n * self.rows
        self.right: list[int] = []  # where the panels of each B begin
        for tiles, m in zip(self.tiles, factored.widths, strict=True):
            self.right.append(count)
            home: dict[int, list[int]] = {}
            for tile in tiles:
                for l in tile.support:
                    for j in tile.columns:
                        home[l * m + j] = [count]
                        count += 1
            self.homes.append(home)
        self.added = [factored.added(k) for k in range(len(factored.right))]
        for some in self.added:
            self.homes.append({at: [count + k] for k, at in enumerate(some)})
            count += len(some)
        self.zero, self.products = count, count + 1
        room = max((self._panel(tiles) for tiles in self.tiles), default=0)
        tables = [*map(self._product_table, range(len(self.tiles))), [self.homes[0][e][0] for e in range(n * n)]]
        super().__init__(factored.input_sizes, tables, count + 1 + len(self.panels) * room, target)

    def _home_of_A(self) -> dict[int, list[int]]:
        """The places of its entries: of some rows in two panels."""
        n, home = self.factored.order, {}
        for g, start in enumerate(self.panels):
            for l in range(n):
                for r in range(self.rows):
                    home.setdefault((start + r) * n + l, []).append((g * n + l) * self.rows + r)
        return home

    def _panel(self, tiles: Sequence[Tile]) -> int:
        """Vectors of results that a panel of A has."""
        return self.rows * sum(len(tile.columns) for tile in tiles)

    def _product_table(self, k: int) -> list[int]:
        """The places of P's entries, row-major: those of C's where there is nothing to multiply."""
        tiles, m = self.tiles[k], self.factored.widths[k]
        table, panel = [self.zero] * (self.factored.order * m), self._panel(tiles)
        for at in self.added[k]:
            table[at] = self._added_place(k, at)
        for g, start in enumerate(self.panels):
            for tile in tiles:
                for r in range(self.rows):
                    for c, j in enumerate(tile.columns):
                        place = self.products + g * panel + tile.result + r * len(tile.columns) + c
                        table[(start + r) * m + j] = place
        return table

    def _added_place(self, k: int, at: int) -> int:
        return self.homes[1 + len(self.tiles) + k][at][0]

    def places(self, output: int, element: int) -> Sequence[int]:
        return self.homes[output].get(element, ())

    def finish(self, code: Code) -> None:
        code.store("zeroinitializer", self.results, self.first + self.zero)
        super().finish(code)

    def before(self, code: Code, result: int, source: str) -> None:
        if result < len(self.tiles) and self.tiles[result]:
            code.do(f"call void @multiply{result}(ptr {source})")
            for at in self.added[result]:
                place, more = self.tables[result][at], self._added_place(result, at)
                if place != more:
                    code.store(code.op("fadd", code.load(source, place), code.load(source, more)), source, place)

    def text(self) -> str:
        products = [self._product_text(k) for k, tiles in enumerate(self.tiles) if tiles]
        return "\n".join([*products, super().text()])

    def _product_text(self, k: int) -> str:
        """The function `@multiplyk`, and what it must know of its tiles, by their number of columns."""
        tiles, n = self.tiles[k], self.factored.order
        code = Code(self.target)
        step = self.rows * code.bytes  # from one l to the next in a panel of A
        code.do("br label %panel")
        code.label("panel")
        first = len(code.lines)
        a = code.step("%from", code.add(f"mul i64 %g, {n * step}"))
        panel = code.step("%from", code.add(f"mul i64 %g, {self._panel(tiles) * code.bytes}"))
        before, tables = "panel", []
        for columns in sorted({len(tile.columns) for tile in tiles}, reverse=True):
            some = [tile for tile in tiles if len(tile.columns) == columns]
            name, words = f"@tiles{k}_{columns}", []
            for tile in some:
                words += [len(tile.support), *(l * step for l in tile.support)]
            tables.append(table_text(name[1:], words))
            b = code.step("%from", (self.right[k] + some[0].given) * code.bytes)
            to = code.step(panel, (self.products + some[0].result) * code.bytes)
            before = self._tiles_text(code, columns, len(some), name, (a, b, to), before)
        code.lines.insert(first, f"  %g = phi i64 [0, %entry], [%following, %{before}]")
        code.do("%following = add i64 %g, 1")
        code.do(f"%more = icmp slt i64 %following, {len(self.panels)}")
        code.do("br i1 %more, label %panel, label %done")
        code.label("done")
        head = f"define internal void @multiply{k}(ptr noalias %from) noinline {code.attributes()}"
        return "\n".join([*tables, code.function(head)])

    def _tiles_text(
        self, code: Code, columns: int, count: int, table: str, addresses: tuple[str, str, str], before: str
    ) -> str:
        """A loop over tiles of so many columns; the label of its last block. The results are negative sums."""
        a, b, to = addresses
        tag = f"{columns}"
        code.do(f"br label %tile{tag}")
        code.label(f"tile{tag}")
        for kind, name, start in (("ptr", "b", b), ("ptr", "to", to), ("ptr", "t", table), ("i64", "i", "0")):
            code.do(f"%{name}{tag} = phi {kind} [{start}, %{before}], [%{name}_next{tag}, %term{tag}_end]")
        code.do(f"%count{tag} = load i32, ptr %t{tag}")
        code.do(f"%long{tag} = sext i32 %count{tag} to i64")
        code.do(f"%first{tag} = getelementptr i32, ptr %t{tag}, i64 1")
        code.do(f"%t_next{tag} = getelementptr i32, ptr %first{tag}, i64 %long{tag}")
        code.do(f"br label %term{tag}")
        code.label(f"term{tag}")
        cells = [(r, c) for r in range(self.rows) for c in range(columns)]
        sums, at = [code.name() for _ in cells], len(code.lines)
        offset = code.add(f"sext i32 {code.add(f'load i32, ptr %l{tag}')} to i64")
        row = code.step(a, offset)
        right = [code.load(f"%own{tag}", c) for c in range(columns)]
        new = []
        for r in range(self.rows):
            left = code.load(row, r)
            new += [code.fused(FROM, left, right[c], sums[r * columns + c]) for c in range(columns)]
        phis = [("ptr", f"%l{tag}", f"%first{tag}", f"%l_next{tag}"),
                ("ptr", f"%own{tag}", f"%b{tag}", f"%b_next{tag}")]  # fmt: skip
        phis += [(code.v, name, "zeroinitializer", value) for name, value in zip(sums, new, strict=True)]
        code.lines[at:at] = [
            f"  {name} = phi {kind} [{start}, %tile{tag}], [{value}, %term{tag}]" for kind, name, start, value in phis
        ]
        code.do(f"%b_next{tag} = getelementptr i8, ptr %own{tag}, i64 {columns * code.bytes}")
        code.do(f"%l_next{tag} = getelementptr i32, ptr %l{tag}, i64 1")
        code.do(f"%on{tag} = icmp ne ptr %l_next{tag}, %t_next{tag}")
        code.do(f"br i1 %on{tag}, label %term{tag}, label %term{tag}_end")
        code.label(f"term{tag}_end")
        for (r, c), value in zip(cells, new, strict=True):
            code.store(value, f"%to{tag}", r * columns + c)
        code.do(f"%to_next{tag} = getelementptr i8, ptr %to{tag}, i64 {len(cells) * code.bytes}")
        code.do(f"%i_next{tag} = add i64 %i{tag}, 1")
        code.do(f"%again{tag} = icmp slt i64 %i_next{tag}, {count}")
        code.do(f"br i1 %again{tag}, label %tile{tag}, label %after{tag}")
        code.label(f"after{tag}")
        return f"after{tag}"


__all__ = ["FactoredRows", "tile_sizes"]
