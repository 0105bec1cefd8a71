"""An engine for tests, added as docs/architecture.md says: this folder and one line of the list."""
