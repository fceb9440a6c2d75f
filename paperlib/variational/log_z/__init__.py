"""Approximations of ln Z of an RBM by free energies: TAP, Bethe and tree-reweighted."""
