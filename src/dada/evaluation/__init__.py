"""How good a result is: metrics, the two protocols of the field, and a bench that runs methods side by side."""
