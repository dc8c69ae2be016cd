"""What the PyTorch layers share."""
