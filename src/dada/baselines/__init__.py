"""The methods the paper compares with, one file each; `dada.models.registry` names them."""
