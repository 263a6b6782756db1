"""The page of `dada app`: a local server, its queue and its worker processes."""
