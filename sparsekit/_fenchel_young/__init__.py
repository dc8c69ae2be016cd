"""Sparsemax and softmax regression by Fenchel-Young losses."""
