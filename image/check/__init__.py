"""The check of the image: pytest, run as root on Debian by `make image-check`."""
