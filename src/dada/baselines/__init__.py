"""The methods the paper compares with, one file each; `dada.methods` names them."""
