"""Build the project's OCI image, and check it; nothing of this is part of what is served."""
