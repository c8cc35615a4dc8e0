"""architecture-search in Python, with the same steps as src/suite/tasks/architecture_search.cc."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from twin_parts import warmed_cosine
from twin_words import Vocabulary, lines

LINE_END, UNKNOWN = range(2)
ACTIVATIONS = (torch.tanh, F.relu, lambda x: x, torch.sigmoid)


def stream(vocabulary, texts):
    """Returns the words of all lines, with an end after each line that has words."""
    return torch.tensor([number for text in texts if text for number in (*(vocabulary.numbers.get(word, UNKNOWN) for word in text), LINE_END)])


def halves(text, turn=100):
    """Returns the lines for validation and for testing."""
    return ([line for i, line in enumerate(text) if i // turn % 2 == part] for part in (0, 1))


class Cells(nn.Module):
    """The weights of all cells: of the words, into the first node, and between each two nodes."""

    def __init__(self, vocabulary, width, nodes):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        nn.init.uniform_(self.words.weight, -0.3, 0.3)
        self.input, self.state = nn.Linear(width, 2 * width), nn.Linear(width, 2 * width, bias=False)
        pairs = [f"{i} {j}" for j in range(nodes) for i in range(j)]
        self.between = nn.ModuleDict({pair: nn.Linear(width, 2 * width, bias=False) for pair in pairs})
        self.norm = nn.LayerNorm(width)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, words, cell, state=None):
        """Returns logits of the words after `words` [T, N], and the last state."""
        inputs = self.input(self.words(words))
        state = torch.zeros(words.shape[1], inputs.shape[2] // 2) if state is None else state
        loose = set(range(len(cell))) - {previous for previous, _ in cell[1:]}
        results = []
        for x in inputs:
            nodes = []
            for number, (previous, activation) in enumerate(cell):
                before = nodes[previous] if nodes else state
                sums = self.between[f"{previous} {number}"](before) if nodes else x + self.state(before)
                gate, new = sums.chunk(2, 1)
                nodes.append(torch.lerp(before, ACTIVATIONS[activation](new), gate.sigmoid()))
            state = self.norm(sum(nodes[node] for node in loose) / len(loose))
            results.append(state)
        return F.linear(torch.stack(results), self.words.weight, self.bias), state


class Controller(nn.Module):
    """Chooses, for each node, an earlier node and an activation."""

    def __init__(self, nodes, hidden):
        super().__init__()
        self.hidden = hidden
        self.choices = nn.Embedding(1 + len(ACTIVATIONS) + nodes - 1, hidden)
        self.lstm = nn.LSTMCell(hidden, hidden)
        self.previous = nn.ModuleList(nn.Linear(hidden, node) for node in range(1, nodes))
        self.activations = nn.ModuleList(nn.Linear(hidden, len(ACTIVATIONS)) for _ in range(nodes))
        for name, parameter in self.named_parameters():
            if parameter.dim() == 1 and not name.startswith("lstm"):
                nn.init.zeros_(parameter)
            else:
                nn.init.uniform_(parameter, -0.1, 0.1)

    def draw(self):
        """Returns a cell, the logarithm of its probability, and the entropy."""
        state = torch.zeros(1, self.hidden), torch.zeros(1, self.hidden)
        last, cell, logs, entropies = 0, [], [], []
        for node, activations in enumerate(self.activations):
            chosen = []
            for layer in [self.previous[node - 1], activations] if node > 0 else [activations]:
                state = self.lstm(self.choices.weight[last:last + 1], state)
                log = (2.5 * layer(state[0]).tanh()).log_softmax(1)[0]
                chosen.append(torch.multinomial(log.detach().exp(), 1).item())
                logs.append(log[chosen[-1]])
                entropies.append(-(log.exp() * log).sum())
                last = chosen[-1] + (1 if layer is activations else 1 + len(ACTIVATIONS))
            cell.append((chosen[0] if node > 0 else 0, chosen[-1]))
        return cell, sum(logs), sum(entropies)


class Search:
    BATCH, WINDOW, REWARDED, MOST, EVERY = 32, 20, 32, 1000, 3
    NODES, WIDTH, HIDDEN = 4, 64, 32
    RATES, WARMUP, STEPS, NORM = (0.02, 5e-3), 20, 1000, 1
    REWARD, ENTROPY, DECAY = 80, 1e-4, 0.9

    def __init__(self, data):
        train = lines(data, "train.title.txt")[::self.EVERY]
        self.vocabulary = Vocabulary(train, self.MOST, special=UNKNOWN + 1)
        self.train = stream(self.vocabulary, train)
        self.valid, self.test = (stream(self.vocabulary, half) for half in halves(lines(data, "test.title.txt")))
        self.samples = (len(self.train) - 1) // self.WINDOW
        self.cells, self.controller = Cells(self.vocabulary.size, self.WIDTH, self.NODES), Controller(self.NODES, self.HIDDEN)
        models = self.cells, self.controller
        self.optimizers = [torch.optim.Adam(model.parameters(), rate) for model, rate in zip(models, self.RATES)]
        self.schedules = [warmed_cosine(optimizer, self.WARMUP, self.STEPS) for optimizer in self.optimizers]
        self.mean_reward = None

    def nats(self, text, windows, cell):
        places = windows * self.WINDOW + torch.arange(self.WINDOW).unsqueeze(1)
        logits, _ = self.cells(text[places], cell)
        return F.cross_entropy(logits.flatten(0, 1), text[places + 1].flatten())

    def update(self, number, loss):
        optimizer = self.optimizers[number]
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], self.NORM)
        optimizer.step()
        self.schedules[number].step()
        return loss.item()

    def step(self, index):
        with torch.no_grad():
            cell, _, _ = self.controller.draw()
        loss = self.update(0, self.nats(self.train, index, cell))
        cell, log, entropy = self.controller.draw()
        with torch.no_grad():
            windows = torch.randint((len(self.valid) - 1) // self.WINDOW, (self.REWARDED,))
            reward = self.REWARD * math.exp(-min(self.nats(self.valid, windows, cell).item(), 10))
        self.mean_reward = reward if self.mean_reward is None else self.mean_reward
        loss += self.update(1, (self.mean_reward - reward) * log - self.ENTROPY * entropy)
        self.mean_reward = self.DECAY * self.mean_reward + (1 - self.DECAY) * reward
        return loss / 2

    @torch.no_grad()
    def perplexity(self, text, cell, rows=100):
        """Returns the perplexity of a text that is read in rows, with the state of the cell."""
        length = (len(text) - 1) // rows
        words, after = (text[first:first + rows * length].view(rows, length).t() for first in (0, 1))
        state, nats = None, 0.0
        for begin in range(0, length, 40):
            logits, state = self.cells(words[begin:begin + 40], cell, state)
            nats += F.cross_entropy(logits.flatten(0, 1), after[begin:begin + 40].flatten(), reduction="sum").item()
        return math.exp(nats / after.numel())

    @torch.no_grad()
    def quality(self, candidates=8, chosen_by=4000):
        """Returns the perplexity of the test text by the cell that is best for the validation text."""
        cells = [self.controller.draw()[0] for _ in range(candidates)]
        return self.perplexity(self.test, min(cells, key=lambda cell: self.perplexity(self.valid[:chosen_by + 1], cell)))


def make(data):
    task = Search(data)
    return task.step, task.BATCH, task.samples
