"""Evidence for an operator: calibration and acceptance; knows nothing of argument parsing."""
