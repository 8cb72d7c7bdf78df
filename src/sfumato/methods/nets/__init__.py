"""Private training of networks, in torch: batches, clipped gradients, descent, autoencoders."""
