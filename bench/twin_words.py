"""text-to-text and language-modelling in Python, with the same steps as src/suite/tasks."""

import collections
import pathlib
import re

import torch
import torch.nn.functional as F
from torch import nn

FOLDER = "package-texts"
WORD = re.compile(rb"[0-9A-Za-z\x80-\xff]+(?:[-+.'_][0-9A-Za-z\x80-\xff]+)*|[!-/:-@\[-`{-~]")
SMALL = re.compile(rb"\xc3[\x80-\x96\x98-\x9e]")
PADDING, START, END, UNKNOWN, SPECIAL = range(5)


def words(line):
    """Returns the words and signs of a line, in lower case."""
    line = SMALL.sub(lambda found: bytes([0xC3, found[0][1] + 0x20]), line.lower())
    return WORD.findall(line)


def lines(data, name):
    return [words(line) for line in (pathlib.Path(data) / FOLDER / name).read_bytes().splitlines()]


class Vocabulary:
    """The most frequent words of sentences. Of equally frequent ones, the first one found counts."""

    def __init__(self, sentences, most, least_count=1, special=SPECIAL):
        counts = collections.Counter(word for sentence in sentences for word in sentence)
        kept = [word for word, count in counts.most_common(most - special) if count >= least_count]
        self.numbers = {word: number for number, word in enumerate(kept, special)}
        self.words = kept
        self.size = special + len(kept)

    def of(self, sentence):
        return [self.numbers.get(word, UNKNOWN) for word in sentence]


def padded(rows):
    width = max(len(row) for row in rows)
    return torch.tensor([row + [PADDING] * (width - len(row)) for row in rows])


class Attention(nn.Module):
    def __init__(self, width, heads, dropped):
        super().__init__()
        self.heads, self.dropped = heads, dropped
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x, memory, mask):
        def split(y):
            return y.unflatten(2, (self.heads, -1)).transpose(1, 2)

        q, k, v = split(self.query(x)), split(self.key(memory)), split(self.value(memory))
        scores = q.matmul(k.transpose(2, 3)) / q.shape[3] ** 0.5
        weights = scores.masked_fill(mask.logical_not(), -torch.inf).softmax(3)
        y = F.dropout(weights, self.dropped, self.training).matmul(v)
        return self.out(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Attention to itself, to the other text, and two layers, each followed by normalisation."""

    def __init__(self, width, heads, hidden, other, dropped, gelu=False, epsilon=1e-5):
        super().__init__()
        self.dropped, self.activation = dropped, F.gelu if gelu else F.relu
        self.self_attention = Attention(width, heads, dropped)
        self.cross_attention = Attention(width, heads, dropped) if other else None
        self.inner, self.outer = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width, epsilon) for _ in range(3 if other else 2))

    def forward(self, x, mask, memory=None, memory_mask=None):
        def drop(y):
            return F.dropout(y, self.dropped, self.training)

        x = self.norms[0](x + drop(self.self_attention(x, x, mask)))
        if self.cross_attention is not None:
            x = self.norms[1](x + drop(self.cross_attention(x, memory, memory_mask)))
        return self.norms[-1](x + drop(self.outer(self.activation(self.inner(x)))))


def sines(length, width):
    places = torch.arange(length).unsqueeze(1)
    rates = torch.exp(torch.arange(0, width, 2) * (-torch.log(torch.tensor(10000.0)) / width))
    return torch.stack([(places * rates).sin(), (places * rates).cos()], 2).flatten(1)


class Transformer(nn.Module):
    def __init__(self, vocabulary, width, heads, hidden, layers, dropped, longest=256):
        super().__init__()
        self.dropped, self.width = dropped, width
        self.words = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.words.weight, 0, width**-0.5)
        self.encoder = nn.ModuleList(Block(width, heads, hidden, False, dropped) for _ in range(layers))
        self.decoder = nn.ModuleList(Block(width, heads, hidden, True, dropped) for _ in range(layers))
        self.places = sines(longest, width)

    def embed(self, text):
        x = self.words(text) * self.width**0.5 + self.places[:text.shape[1]]
        return F.dropout(x, self.dropped, self.training)

    def encode(self, text):
        mask = (text != PADDING)[:, None, None, :]
        x = self.embed(text)
        for block in self.encoder:
            x = block(x, mask)
        return x, mask

    def decode(self, before, memory, memory_mask):
        length = before.shape[1]
        past = torch.ones(length, length, dtype=torch.bool).tril()
        x = self.embed(before)
        for block in self.decoder:
            x = block(x, past, memory, memory_mask)
        return x

    def logits(self, x):
        return F.linear(x, self.words.weight)


class Translation:
    """Words outside the vocabulary are neither learned nor predicted."""

    BATCH, RATE, WARMUP, MOST, LEAST_COUNT = 64, 3e-3, 100, 4000, 2
    DROPPED, SMOOTHING = 0.1, 0.1

    def __init__(self, data):
        texts = {name: lines(data, name) for name in ("train.en", "train.de", "test.en", "test.de")}
        self.vocabulary = Vocabulary(texts["train.en"] + texts["train.de"], self.MOST, self.LEAST_COUNT)
        self.texts = {name: [self.vocabulary.of(line) for line in text] for name, text in texts.items()}
        self.model = Transformer(self.vocabulary.size, 128, 4, 512, 2, self.DROPPED)
        self.samples = len(texts["train.en"])
        self.steps = 0
        self.optimizer = torch.optim.Adam(self.model.parameters(), self.RATE, betas=(0.9, 0.98), eps=1e-9)

    def batch(self, sources, targets):
        source = padded([row + [END] for row in sources])
        return source, padded([[START, *row] for row in targets]), padded([row + [END] for row in targets])

    def loss(self, index):
        source, before, after = self.batch(*([self.texts[name][i] for i in index] for name in ("train.en", "train.de")))
        x = self.model.decode(before, *self.model.encode(source))
        places = ((after != PADDING) & (after != UNKNOWN)).flatten().nonzero().squeeze(1)
        logits = self.model.logits(x.flatten(0, 1)[places])
        return F.cross_entropy(logits, after.flatten()[places], label_smoothing=self.SMOOTHING)

    def step(self, index):
        self.steps += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.RATE * min(self.steps / self.WARMUP, (self.WARMUP / self.steps) ** 0.5)
        loss = self.loss(index.tolist())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def translation(data):
    task = Translation(data)
    return task.step, task.BATCH, task.samples


CLASS, SEPARATOR, MASK = START, END, 4  # of the language model


class Bert(nn.Module):
    def __init__(self, vocabulary, width, heads, hidden, layers, length, dropped, deviation):
        super().__init__()
        self.dropped = dropped
        self.words, self.places, self.segments = (nn.Embedding(rows, width) for rows in (vocabulary, length, 2))
        self.norm = nn.LayerNorm(width, 1e-12)
        self.blocks = nn.ModuleList(Block(width, heads, hidden, False, dropped, gelu=True, epsilon=1e-12) for _ in range(layers))
        self.pooler, self.next = nn.Linear(width, width), nn.Linear(width, 2)
        self.transform, self.transform_norm = nn.Linear(width, width), nn.LayerNorm(width, 1e-12)
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, 0, deviation)
            elif "norm" not in name:
                nn.init.zeros_(parameter)

    def forward(self, text, segments):
        x = self.words(text) + self.places.weight[:text.shape[1]] + self.segments(segments)
        x = F.dropout(self.norm(x), self.dropped, self.training)
        mask = (text != PADDING)[:, None, None, :]
        for block in self.blocks:
            x = block(x, mask)
        return x

    def logits(self, x):
        return F.linear(self.transform_norm(F.gelu(self.transform(x))), self.words.weight, self.bias)

    def follows(self, x):
        return self.next(self.pooler(x[:, 0]).tanh())


class LanguageModel:
    """The first two sentences of each document. Half of the time the second is that of another document."""

    BATCH, RATE, WARMUP, MOST, LENGTH, DROPPED, DEVIATION = 64, 2e-3, 50, 1000, 20, 0.0, 0.06
    GUESSED = 0.3

    def __init__(self, data):
        self.documents = {part: self.read(data, part) for part in ("train.txt", "test.txt")}
        self.vocabulary = Vocabulary([one for document in self.documents["train.txt"] for one in document], self.MOST, special=SPECIAL + 1)
        self.documents["train.txt"] = self.documents["train.txt"][::3]
        for part, documents in self.documents.items():
            self.documents[part] = [[self.vocabulary.of(one) for one in document] for document in documents]
        self.model = Bert(self.vocabulary.size, 128, 2, 512, 2, self.LENGTH, self.DROPPED, self.DEVIATION)
        self.samples = len(self.documents["train.txt"])
        self.optimizer = torch.optim.Adam(self.model.parameters(), self.RATE)
        self.steps = 0

    @staticmethod
    def read(data, part):
        documents = (pathlib.Path(data) / FOLDER / part).read_bytes().split(b"\n\n")
        documents = [[words(line) for line in document.split(b"\n")[:2]] for document in documents]
        return [document for document in documents if len(document) > 1 and all(document)]

    def pair(self, document, other):
        first, second = document[0], [word for one in other[1:] for word in one]
        first = first[:self.LENGTH // 2 - 2]
        second = second[:self.LENGTH - 3 - len(first)]
        return [CLASS, *first, SEPARATOR, *second, SEPARATOR], [0] * (len(first) + 2) + [1] * (len(second) + 1)

    def step(self, index):
        documents = self.documents["train.txt"]
        count = len(index)
        draws = torch.empty(2, count).uniform_()
        follows = draws[0] < 0.5
        others = torch.where(follows, index, (draws[1] * len(documents)).long())
        rows = [self.pair(documents[i], documents[j]) for i, j in zip(index.tolist(), others.tolist())]
        text, segments = padded([row for row, _ in rows]), padded([row for _, row in rows])
        chances = torch.empty(2, *text.shape).uniform_()
        some = (torch.empty(text.shape).uniform_() * self.vocabulary.size).long()
        masked = (chances[0] < self.GUESSED) & (text > SPECIAL)
        places = masked.flatten().nonzero().squeeze(1)
        wanted = text.flatten()[places]
        seen = torch.where(masked & (chances[1] < 0.8), MASK, text)
        seen = torch.where(masked & (chances[1] >= 0.9), some, seen)
        x = self.model(seen, segments)
        loss = F.cross_entropy(self.model.logits(x.flatten(0, 1)[places]), wanted)
        loss = loss + F.cross_entropy(self.model.follows(x), follows.long())
        self.steps += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.RATE * min(1, self.steps / self.WARMUP)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def language_modelling(data):
    task = LanguageModel(data)
    return task.step, task.BATCH, task.samples
