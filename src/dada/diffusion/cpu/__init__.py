"""The operators of the saddle system compiled for the CPU."""
