"""summarization in Python, step for step what src/suite/tasks/summarization.cc does."""

import collections
import math

import torch
from torch import nn

from twin_words import END, PADDING, SPECIAL, START, UNKNOWN, lines, padded


class PointerGenerator(nn.Module):
    """Pointer-generator with coverage (See et al., 1704.04368) and attention within the decoder (Paulus et al., 1705.04304)."""

    def __init__(self, vocabulary, width, hidden):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.words.weight, 0, 0.3)
        self.encoder = nn.LSTM(width, hidden, batch_first=True, bidirectional=True)
        self.first_hidden, self.first_cell = nn.Linear(2 * hidden, hidden), nn.Linear(2 * hidden, hidden)
        self.keys, self.asker = nn.Linear(2 * hidden, 2 * hidden, bias=False), nn.Linear(2 * hidden, 2 * hidden)
        self.covered, self.score = nn.Linear(1, 2 * hidden, bias=False), nn.Linear(2 * hidden, 1, bias=False)
        self.past_keys, self.past_asker = nn.Linear(hidden, hidden, bias=False), nn.Linear(hidden, hidden)
        self.past_score = nn.Linear(hidden, 1, bias=False)
        self.input = nn.Linear(2 * hidden + width, width)
        self.decoder = nn.LSTMCell(width, hidden)
        self.share = nn.Linear(5 * hidden + width, 1)
        self.inner, self.outer = nn.Linear(4 * hidden, hidden), nn.Linear(hidden, vocabulary)

    def encode(self, text):
        """Returns the encoded texts and the decoder's first state."""
        states, (hidden, cell) = self.encoder(self.words(text))
        hidden, cell = (x.transpose(0, 1).flatten(1) for x in (hidden, cell))
        source = states, self.keys(states), (text != PADDING)
        written = {"hidden": self.first_hidden(hidden).relu(), "cell": self.first_cell(cell).relu(),
                   "context": states.new_zeros(states.shape[0], states.shape[2]),
                   "coverage": states.new_zeros(text.shape), "before": [], "keys": []}  # fmt: skip
        return source, written

    def step(self, word, source, written):
        """Returns features for `logits`, the probability of no copy, the attention, and its part that was covered before."""
        states, keys, mask = source
        x = self.input(torch.cat([written["context"], word], 1))
        hidden, cell = self.decoder(x, (written["hidden"], written["cell"]))
        both = torch.cat([hidden, cell], 1)
        asked = keys + self.asker(both).unsqueeze(1) + self.covered(written["coverage"].unsqueeze(2))
        attention = self.score(asked.tanh()).squeeze(2).masked_fill(mask.logical_not(), -torch.inf).softmax(1)
        context = attention.unsqueeze(1).matmul(states).squeeze(1)
        again = torch.minimum(attention, written["coverage"]).sum(1)
        past = torch.zeros_like(hidden)
        if written["before"]:
            asked = torch.stack(written["keys"], 1) + self.past_asker(hidden).unsqueeze(1)
            weights = self.past_score(asked.tanh()).squeeze(2).softmax(1)
            past = weights.unsqueeze(1).matmul(torch.stack(written["before"], 1)).squeeze(1)
        written["before"].append(hidden)
        written["keys"].append(self.past_keys(hidden))
        written.update(hidden=hidden, cell=cell, context=context, coverage=written["coverage"] + attention)
        share = self.share(torch.cat([context, past, both, x], 1)).squeeze(1).sigmoid()
        return torch.cat([hidden, context, past], 1), share, attention, again

    def logits(self, features):
        return self.outer(self.inner(features))


class Summarization:
    """Words outside of the vocabulary are copied from the text, or learned as unknown words."""

    BATCH, RATE, WARMUP, STEPS, NORM = 64, 1e-2, 20, 320, 2
    MOST, LONGEST, LONGEST_SUMMARY, WIDTH, HIDDEN = 2000, 30, 12, 64, 64

    def __init__(self, data):
        names = ("train.article.txt", "train.title.txt", "test.article.txt", "test.title.txt")
        lengths = (self.LONGEST, self.LONGEST_SUMMARY - 1, self.LONGEST, None)
        texts = [[line[:length] for line in lines(data, name)] for name, length in zip(names, lengths)]
        counts = collections.Counter(word for text in texts[:2] for line in text for word in line)
        for word in (word for text in texts[2:] for line in text for word in line):
            counts.setdefault(word, 0)
        self.numbers = {word: number for number, (word, _) in enumerate(counts.most_common(), SPECIAL)}
        self.size = min(self.MOST, SPECIAL + len(counts))
        numbered = [[[self.numbers[word] for word in line] for line in text] for text in texts]
        self.train, self.test = ([pair for pair in zip(*numbered[i:i + 2]) if all(pair)] for i in (0, 2))
        self.model = PointerGenerator(self.size, self.WIDTH, self.HIDDEN)
        self.optimizer = torch.optim.Adam(self.model.parameters(), self.RATE)
        self.samples = len(self.train)
        self.steps = 0

    def known(self, words):
        return words.masked_fill(words >= self.size, UNKNOWN)

    def sources(self, texts):
        return torch.tensor([text + [PADDING] * (self.LONGEST - len(text)) for text in texts])

    def schedule(self, step):
        if step < self.WARMUP:
            return (step + 1) / self.WARMUP
        return (1 + math.cos(math.pi * (step - self.WARMUP) / (self.STEPS - self.WARMUP))) / 2

    def step(self, index):
        texts, summaries = zip(*(self.train[i] for i in index.tolist()))
        text, wanted = self.sources(texts), padded([[*row, END] for row in summaries])
        said = self.model.words(self.known(padded([[START, *row] for row in summaries])))
        source, written = self.model.encode(self.known(text))
        steps = [self.model.step(said[:, i], source, written) for i in range(wanted.shape[1])]
        features, share, attention, covered = (torch.stack(parts, 1) for parts in zip(*steps))
        copies = (attention * (text.unsqueeze(1) == wanted.unsqueeze(2))).sum(2)
        words = self.model.logits(features).softmax(2)
        # Words that are neither in the vocabulary nor in the text are learned as unknown words.
        said_so = words.gather(2, self.known(wanted).unsqueeze(2)).squeeze(2)
        said_so = said_so * ((wanted < self.size) | (copies == 0))
        nats = -(share * said_so + (1 - share) * copies).clamp_min(1e-12).log()
        counts = wanted != PADDING
        loss = ((nats + covered) * counts).sum() / counts.sum()
        for group in self.optimizer.param_groups:
            group["lr"] = self.RATE * self.schedule(self.steps)
        self.steps += 1
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.NORM)
        self.optimizer.step()
        return loss.item()


def make(data):
    task = Summarization(data)
    return task.step, task.BATCH, task.samples
