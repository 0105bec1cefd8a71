"""Build the project's OCI image, and check one; nothing of this is part of what is served."""
