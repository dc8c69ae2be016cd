"""SequenceTagger: labels of the positions of sequences."""
