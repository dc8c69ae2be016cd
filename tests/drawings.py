"""What the tests of pictures share."""


def overlap(texts, figure):
    """Pairs of texts whose boxes share more than a hair."""
    figure.canvas.draw()
    boxes = [(text.get_text(), text.get_window_extent().padded(-1)) for text in texts if text.get_text()]
    return [(a, b) for k, (a, one) in enumerate(boxes) for b, two in boxes[k + 1 :] if one.overlaps(two)]
