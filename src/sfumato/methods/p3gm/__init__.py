"""P3GM: principal axes, a mixture of Gaussians on them, a decoder by private gradient descent."""
