"""polybody: robots and mechanisms, described once."""

__version__ = "0.1.0.dev0"
