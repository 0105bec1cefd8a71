"""A typed decision over text by one forward pass, served over HTTP; this file holds the version only."""

__version__ = "0.1.0"
