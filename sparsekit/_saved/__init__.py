"""Fitted models in files, without pickle."""
