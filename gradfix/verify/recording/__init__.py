"""What one watched run of a script did to gradients, as the probe recorded it.

Everything here is plain data, readable without torch: gradfix compares recordings in its own
process, which may have no torch at all. Small tensors are there whole, large ones as a sketch
(projections on fixed random signs, from which the distance of two tensors is estimated).
"""
