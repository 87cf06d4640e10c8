"""`polybody schema`: the JSON Schema of mechanism files."""

from __future__ import annotations

import json

import typer

from polybody.cli.output import JsonOption


def register(app: typer.Typer) -> None:
    @app.command("schema")
    def schema(as_json: JsonOption = False) -> None:
        """Print the JSON Schema of mechanism files, for editors that validate YAML while you type."""
        from polybody.description.mechanism_file.reader import schema as published

        typer.echo(json.dumps(published(), indent=2, ensure_ascii=False))  # the schema is JSON with or without --json


__all__ = ["register"]
