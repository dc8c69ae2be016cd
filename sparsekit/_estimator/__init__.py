"""What estimators of all systems share."""
