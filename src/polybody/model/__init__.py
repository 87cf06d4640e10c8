"""`Model`: what a user holds. A mechanism, and answers by name."""

from polybody.model.model import Model

__all__ = ["Model"]
