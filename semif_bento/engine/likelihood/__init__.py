"""The likelihood engine: how much a state raises the probability of each option's own words."""
