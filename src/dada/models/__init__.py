"""Models: what gives the diffusion its coefficients. `registry` finds them, and every other method, by name."""
