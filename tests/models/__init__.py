"""Small real models, a real vocabulary and generated rows that tests share."""
