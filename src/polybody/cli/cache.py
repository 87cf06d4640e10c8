"""`polybody cache`: show and clear compiled code kept on disk."""

from __future__ import annotations

from typing import Annotated

import typer

from polybody.cli.output import JsonOption, emit
from polybody.names import counted


def register(app: typer.Typer) -> None:
    @app.command("cache", help="Show the cache of compiled code; --clear empties it.")
    def cache(
        clear: Annotated[bool, typer.Option("--clear", help="Remove every entry.")] = False,
        json: JsonOption = False,
    ) -> None:
        from polybody.kernels import cache as store

        removed = store.clear() if clear else 0
        entries = store.entries()
        answer = {
            "folder": str(store.folder()),
            "removed": removed,
            "bytes": sum(entry.size for entry in entries),
            "entries": [{"name": entry.name, "bytes": entry.size} for entry in entries],
        }

        def draw(console: object) -> None:
            print_ = console.print  # type: ignore[attr-defined]
            print_(f"folder   {answer['folder']}")
            if clear:
                print_(f"removed  {counted(removed, 'entry', 'entries')}")
            print_(f"kept     {counted(len(entries), 'entry', 'entries')}, {answer['bytes'] / 1e6:.1f} MB")
            for entry in entries:
                print_(f"  {entry.size / 1e3:9.1f} kB  {entry.name}")

        emit(answer, json, draw)


__all__ = ["register"]
