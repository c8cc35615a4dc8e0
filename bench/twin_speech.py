"""Speech recognition at the suite's smoke scale in Python: strings of spoken digits, joined, made noisy and turned
into spectrograms in each step, and DeepSpeech2 with one convolution and one recurrent layer."""

import math
import pathlib
import wave

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

RATE = 8000
STRINGS = 4000
MOST_DIGITS = 5
LONGEST_PAUSE = RATE // 5
HELD_OUT_TAKES = 5
WINDOW, STEP, TRANSFORM, BANDS = 200, 80, 256, 40
QUIETEST = 1e-6
PARAMETERS = 188_128


def read_wave(path):
    """Returns the wave with deviation 1."""
    with wave.open(str(path)) as file:
        assert file.getframerate() == RATE and file.getsampwidth() == 2
        samples = torch.frombuffer(bytearray(file.readframes(file.getnframes())), dtype=torch.int16)
        sound = samples.view(-1, file.getnchannels()).float().div(32768).mean(1)
    return sound / sound.square().mean().sqrt().clamp_min(1e-12)


def recordings(data):
    """Returns the training digits by speaker, and the level of their noise."""
    for name, noise in (("free-spoken-digit-dataset", 0.5), ("spoken-digits", 1.0)):
        folder = pathlib.Path(data) / name / "recordings"
        if not folder.exists():
            continue
        speakers = {}
        for path in sorted(folder.glob("*.wav")):
            digit, rest = path.stem.split("_", 1)
            speaker, take = rest.rsplit("_", 1)
            if int(take) >= HELD_OUT_TAKES:
                speakers.setdefault(speaker, []).append((int(digit) + 1, read_wave(path)))
        return list(speakers.values()), noise
    raise FileNotFoundError(f"{data}/spoken-digits")


def mel_bands():
    frequencies = torch.arange(TRANSFORM // 2 + 1, dtype=torch.float64) * RATE / TRANSFORM
    highest = 2595 * math.log10(1 + RATE / 2 / 700)
    corners = 700 * (10 ** (highest * torch.arange(BANDS + 2, dtype=torch.float64) / (BANDS + 1) / 2595) - 1)
    low, middle, high = (corners[i:i + BANDS].unsqueeze(1) for i in range(3))
    return torch.minimum((frequencies - low) / (middle - low), (high - frequencies) / (high - middle)).clamp_min(0).float()


class DeepSpeech(nn.Module):
    def __init__(self, channels=128, hidden=96, symbols=11):
        super().__init__()
        self.conv = nn.Conv2d(1, channels, (BANDS, 11), (1, 4), (0, 5))
        self.conv_norm = nn.BatchNorm2d(channels)
        self.rnn = nn.GRU(channels, hidden, bidirectional=True)
        self.norm = nn.BatchNorm1d(hidden)
        self.fc = nn.Linear(hidden, symbols, bias=False)

    def forward(self, x, frames):
        """Maps x, [N, 1, bins, frames] with the longest first, to log probabilities [steps, N, symbols] and the
        steps of each."""
        steps = (frames - 1) // 4 + 1
        y = self.conv_norm(self.conv(x)).clamp(0, 20)
        y = y.masked_fill(torch.arange(y.shape[3]) >= steps.view(-1, 1, 1, 1), 0)
        packed = pack_padded_sequence(y.flatten(1, 2).permute(2, 0, 1), steps)
        found = self.rnn(packed)[0].data
        found = found.unflatten(1, (2, -1)).sum(1)
        found = self.fc(self.norm(found)).log_softmax(1)
        return pad_packed_sequence(PackedSequence(found, packed.batch_sizes))[0], steps


def make(data):
    speakers, noise = recordings(data)
    strings = []
    for _ in range(STRINGS):
        voice = speakers[torch.randint(len(speakers), ()).item()]
        digits = [voice[number] for number in torch.randint(len(voice), (torch.randint(1, MOST_DIGITS + 1, ()).item(),)).tolist()]
        pauses = torch.randint(LONGEST_PAUSE, (len(digits),)).tolist()
        strings.append((digits, pauses))
    window = torch.hamming_window(WINDOW)
    bands = mel_bands()
    model = DeepSpeech()
    parameters = list(model.parameters())
    assert sum(parameter.numel() for parameter in parameters) == PARAMETERS
    optimizer = torch.optim.Adam(parameters, 1e-3)

    def spectrogram(digits, pauses):
        sound = torch.cat([part for (_, voice), pause in zip(digits, pauses) for part in (voice, torch.zeros(pause))])
        sound += torch.randn(len(sound)) * noise
        magnitudes = torch.stft(sound, TRANSFORM, STEP, WINDOW, window, return_complex=True).abs()
        loudness = (bands @ magnitudes.square()).add_(QUIETEST).log_()
        loudness -= loudness.mean()
        return loudness / loudness.square().mean().sqrt().clamp_min(QUIETEST)

    def step(index):
        heard = []
        for number in index.tolist():
            digits, pauses = strings[number]
            heard.append((spectrogram(digits, pauses), [digit for digit, _ in digits]))
        heard.sort(key=lambda one: one[0].shape[1], reverse=True)
        frames = torch.tensor([loudness.shape[1] for loudness, _ in heard])
        x = torch.zeros(len(heard), 1, BANDS, heard[0][0].shape[1])
        for row, (loudness, _) in zip(x, heard):
            row[0, :, :loudness.shape[1]] = loudness
        lengths = torch.tensor([len(answer) for _, answer in heard])
        answers = torch.tensor([answer + [0] * (MOST_DIGITS - len(answer)) for _, answer in heard])
        found, steps = model(x, frames)
        loss = F.ctc_loss(found, answers, steps, lengths, reduction="sum", zero_infinity=True) / len(heard)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 50)
        optimizer.step()
        return loss.item()

    return step, 32, STRINGS
