"""Sparse attention
================

A network with sparsemax attention translates "three seven four" to "374#".

::

    python examples/sparse_attention.py [--sequences 100000] [--plot attention.png]

The attention is equation 12 of the sparsemax paper. The same network is trained with softmax and with
sparsemax attention. Without arguments it is a small version (shorter numbers, fewer sequences) that takes
less than a minute; ``--sequences 100000 --max-digits 8`` is the paper's scale. Needs PyTorch (pip install
torch matplotlib); without it the example says so and ends.
"""

import argparse
import sys
import time

from sparsekit.datasets import make_spelled_digits

END, N_TOKENS, HIDDEN, BATCH = 10, 11, 64, 100


# %%
# The network
# -----------
#
# ``attend`` is the only difference between the two: softmax or sparsemax.
def make_model(torch, attend):
    """The encoder-decoder with the map ``attend`` from scores to weights."""
    nn = torch.nn

    class Translator(nn.Module):
        def __init__(self, n_letters):
            super().__init__()
            self.letters = nn.Embedding(n_letters, HIDDEN)
            self.encoder = nn.GRU(HIDDEN, HIDDEN, batch_first=True)
            self.from_state = nn.Linear(HIDDEN, HIDDEN, bias=False)  # W
            self.from_input = nn.Linear(HIDDEN, HIDDEN, bias=False)  # U
            self.score = nn.Linear(HIDDEN, 1, bias=False)  # v
            self.decoder = nn.GRUCell(HIDDEN, HIDDEN)
            self.output = nn.Linear(HIDDEN, N_TOKENS)
            for name, parameter in self.named_parameters():
                if "bias" in name:
                    nn.init.zeros_(parameter)
                else:
                    nn.init.trunc_normal_(parameter, std=0.1, a=-0.2, b=0.2)

        def forward(self, inputs, lengths, n_steps):
            """Scores of the tokens (batch, steps, 11) and attention weights (batch, steps, letters)."""
            states, _ = self.encoder(self.letters(inputs))
            keys = self.from_input(states)
            allowed = torch.arange(inputs.shape[1]) < lengths[:, None]
            # the decoder starts from what the encoder knew at the end of the text
            state = states[torch.arange(len(inputs)), lengths - 1]
            scores, weights = [], []
            for _ in range(n_steps):
                energy = self.score(torch.tanh(self.from_state(state)[:, None] + keys))[..., 0]
                alpha = attend(energy.masked_fill(~allowed, -torch.inf))
                state = self.decoder((alpha[:, None] @ states)[:, 0], state)
                scores.append(self.output(state))
                weights.append(alpha)
            return torch.stack(scores, 1), torch.stack(weights, 1)

    return Translator


# %%
# Training
# --------
def as_tensors(torch, data):
    return [torch.from_numpy(a) for a in (data.inputs, data.input_lengths, data.targets, data.target_lengths)]


def accuracy(torch, model, data):
    """Share of the tokens, the end included, that are right."""
    inputs, lengths, targets, counts = as_tensors(torch, data)
    with torch.no_grad():
        found = model(inputs, lengths, targets.shape[1])[0].argmax(-1)
    counted = torch.arange(targets.shape[1]) < counts[:, None]
    whole = ((found == targets) | ~counted).all(1).double().mean()
    return ((found == targets) & counted).sum().item() / counted.sum().item(), whole.item()


def train(torch, attend, options):
    """A model trained on ``options.sequences`` fresh sequences, and its accuracies on held-out ones."""
    torch.manual_seed(options.seed)
    sizes = dict(min_digits=options.min_digits, max_digits=options.max_digits)
    held_out = make_spelled_digits(1000, **sizes, random_state=10**6)
    model = make_model(torch, attend)(len(held_out.letters))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    start = time.perf_counter()
    for step in range(options.sequences // BATCH):
        batch = make_spelled_digits(BATCH, **sizes, random_state=options.seed * 10**5 + step)
        inputs, lengths, targets, counts = as_tensors(torch, batch)
        scores, _ = model(inputs, lengths, targets.shape[1])
        counted = torch.arange(targets.shape[1]) < counts[:, None]
        loss = torch.nn.functional.cross_entropy(scores[counted], targets[counted])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if sys.stderr.isatty() and step % 20 == 0:
            print(f"\r{step * BATCH} sequences, loss {loss.item():.3f} ", end="", file=sys.stderr)
    tokens, whole = accuracy(torch, model, held_out)
    return model, tokens, whole, time.perf_counter() - start


# %%
# The attention
# -------------
def draw(torch, models, data, path):
    """Attention maps of one number, a panel a model."""
    import matplotlib.pyplot as plt

    from sparsekit.inspection import AttentionDisplay

    inputs, lengths, targets, counts = as_tensors(torch, data)
    text, number = data.texts[0], data.numbers[0]
    size = (5.2 * len(models), 1.4 + 0.3 * len(number))
    figure, axes = plt.subplots(1, len(models), figsize=size, squeeze=False, layout="constrained")
    for axis, (name, (model, tokens, _, _)) in zip(axes[0], models.items()):
        with torch.no_grad():
            scores, weights = model(inputs, lengths, targets.shape[1])
        found = "".join("#" if k == END else str(k) for k in scores[0, : counts[0]].argmax(-1).tolist())
        AttentionDisplay.from_weights(
            weights[0, : counts[0], : lengths[0]], found, text, ax=axis, colorbar=axis is axes[0, -1],
            title=f"{name}: {100 * tokens:.1f} % of held-out digits",
        )  # fmt: skip
        axis.set(xlabel="letter read", ylabel="digit written")
    figure.savefig(path, dpi=120)


# %%
# The comparison
# --------------
def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sequences", type=int, default=20000, help="training sequences (default %(default)s)"
    )
    parser.add_argument("--min-digits", type=int, default=1)
    parser.add_argument(
        "--max-digits", type=int, default=5, help="digits of the longest number (default %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plot", metavar="FILE", help="where to draw the attention maps")
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("This example needs PyTorch: pip install torch. Nothing was run.")
        return
    from sparsekit.torch import sparsemax

    maps = {"softmax": lambda z: torch.softmax(z, -1), "sparsemax": sparsemax}
    models = {}
    for name, attend in maps.items():
        models[name] = train(torch, attend, options)
        _, tokens, whole, seconds = models[name]
        print(
            f"{name:9s}  {options.sequences} sequences in {seconds:.0f} s: {100 * tokens:.1f} % of the "
            f"held-out digits are right, {100 * whole:.1f} % of the numbers",
            flush=True,
        )
    if options.plot:
        shown = make_spelled_digits(
            1, min_digits=options.max_digits, max_digits=options.max_digits, random_state=options.seed + 3
        )
        draw(torch, models, shown, options.plot)


if __name__ == "__main__":
    main()
