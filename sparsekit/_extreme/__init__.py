"""Softmax over very many classes, sampled."""
