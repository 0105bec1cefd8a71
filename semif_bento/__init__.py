"""A typed decision over text by one forward pass, served over HTTP; here stands its version."""

__version__ = "0.1.0"
