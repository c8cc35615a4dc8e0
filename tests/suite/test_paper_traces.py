"""A step of each task at paper scale as a trace: recorded, converted, replayed, and made a benchmark. The
multiplications of its forward pass, by the recorded shapes, are compared with formulas of the published networks
(docs/suite.md#size)."""

import json
import math
import os
import subprocess

import pytest
from paper_data import PAPER_DATA

ETUDE = os.path.join(os.environ["ETUDE_BIN"], "etude")


def etude(*words):
    done = subprocess.run([ETUDE, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


# Multiplications with an addition each (half the FLOP) of the published networks.


def half(size):
    return (size + 1) // 2


def resnet_stage(size, inner, width, blocks, stride):
    """Returns the count for bottlenecks with the stride in the 3 × 3 convolution, with the final size and channels."""
    total, out = 0, 4 * width
    for block in range(blocks):
        step = stride if block == 0 else 1
        after = tuple(map(half, size)) if step == 2 else size
        total += math.prod(size) * inner * width + math.prod(after) * (width * width * 9 + width * out)
        total += math.prod(after) * inner * out if block == 0 else 0
        size, inner = after, out
    return total, size, inner


def resnet(size, blocks):
    size = tuple(map(half, size))
    total, size, inner = math.prod(size) * 3 * 64 * 49, tuple(map(half, size)), 64
    for stage, count in enumerate(blocks):
        macs, size, inner = resnet_stage(size, inner, 64 << stage, count, 1 if stage == 0 else 2)
        total += macs
    return total, size


def inception(side):
    """Inception-v3 before its classifier: Szegedy et al., 1512.00567, in torchvision's form."""

    def halved(side):
        return (side - 3) // 2 + 1

    a = halved(side)
    total = a**2 * 3 * 32 * 9 + (a - 2) ** 2 * (32 * 32 * 9 + 32 * 64 * 9)
    b = halved(a - 2)
    total += b**2 * 64 * 80 + (b - 2) ** 2 * 80 * 192 * 9
    c = halved(b - 2)
    for inner, pooled in ((192, 32), (256, 64), (288, 64)):
        total += c**2 * (inner * (64 + 48 + 64 + pooled) + 48 * 64 * 25 + 64 * 96 * 9 + 96 * 96 * 9)
    d = halved(c)
    total += d**2 * 288 * 384 * 9 + c**2 * (288 * 64 + 64 * 96 * 9) + d**2 * 96 * 96 * 9
    for width in (128, 160, 160, 192):
        total += d**2 * (768 * (192 + 2 * width + 192) + 7 * (4 * width * width + 2 * width * 192))
    e = halved(d)
    total += d**2 * (2 * 768 * 192 + 2 * 192 * 192 * 7) + e**2 * (192 * 320 * 9 + 192 * 192 * 9)
    for inner in (1280, 2048):
        total += e**2 * (inner * (320 + 384 + 448 + 192) + 4 * 384 * 384 * 3 + 448 * 384 * 9)
    return total


def deep_speech(frames):
    """Returns the count of DeepSpeech2 for utterances with these numbers of frames. Convolutions process all as long
    as the longest."""
    steps = [half(count) for count in frames]
    places = len(frames) * max(steps)
    convolutions = places * (81 * 32 * 41 * 11 + 41 * 32 * 32 * 21 * 11)
    recurrent = 2 * 3 * 800 * ((32 * 41 + 800) + 4 * (800 + 800))
    return convolutions + sum(steps) * (recurrent + 800 * 29)


SPATIAL_TRANSFORMER = (
    (22 * 22 * 8 * 49 + 7 * 7 * 8 * 10 * 25 + 90 * 32 + 32 * 6)  # the localiser
    + 28 * 28 * 3 * 2  # positions of the map
    + (24 * 24 * 10 * 25 + 8 * 8 * 10 * 20 * 25 + 320 * 50 + 50 * 10)
)


def caser(width, items):
    """Returns the count of a query against a number of items: 5 rows, 2 vertical filters, 16 horizontal ones of each
    height."""
    horizontal = 16 * width * sum(rows * (6 - rows) for rows in range(1, 6))
    return 5 * 2 * width + horizontal + (2 * width + 16 * 5) * width + items * 2 * width


def detector(size, regions):
    trunk, places = resnet(size, (3, 4, 23))
    proposer = math.prod(places) * (1024 * 512 * 9 + 512 * 9 * (2 + 4))
    head, _, _ = resnet_stage((7, 7), 1024, 512, 3, 2)
    return trunk + proposer + regions * (head + 2048 * 21 * (1 + 4))


def dcgan(side, channels, width, ends):
    """A DCGAN's generator or critic, whose layers at 4 × 4 have so many numbers beside them."""
    total, out = (side // 2) ** 2 * channels * width * 16, width
    while (side := side // 2) > 4:
        total += (side // 2) ** 2 * out * 2 * out * 16
        out *= 2
    return total + 16 * out * ends


# A sample of each of the critic's five updates, scored beside a generated one, and one more of the generator's update.
WGAN = 6 * dcgan(64, 3, 64, 100) + 11 * dcgan(64, 3, 64, 1)


def translator(side):
    """CycleGAN's generator: two convolutions of 7 × 7 at full size, two halvings, nine blocks, two doublings."""
    halvings = 2 * 9 * ((side // 2) ** 2 * 64 * 128 + (side // 4) ** 2 * 128 * 256)
    return 2 * side**2 * 49 * 3 * 64 + halvings + 9 * 2 * (side // 4) ** 2 * 9 * 256**2


def patches(side):
    """Its critic: convolutions of 4 × 4, the last two without a stride."""
    total, inner = 0, 3
    for out, stride in ((64, 2), (128, 2), (256, 2), (512, 1), (1, 1)):
        side = side // 2 if stride == 2 else side - 1
        total, inner = total + side**2 * inner * out * 16, out
    return total


# Each translator there, back, and on what is as it should be; each critic for the translators, a real and an old one.
CYCLEGAN = 6 * translator(48) + 6 * patches(48)


def test_formulas_at_the_papers_sizes():
    assert resnet((224, 224), (3, 4, 6, 3))[0] + 2048 * 1000 == 4_089_184_256
    assert inception(224) == 2_835_873_120
    assert inception(299) + 2048 * 1000 == 5_713_216_096
    assert deep_speech([100]) == 2_587_404_800
    assert (dcgan(64, 3, 64, 100), dcgan(64, 3, 64, 1)) == (104_628_224, 103_817_216)
    assert (translator(256), patches(256)) == (49_551_507_456, 3_146_809_344)
    assert detector((600, 1000), 128) == 129_094_265_856
    assert SPATIAL_TRANSFORMER == 776_004
    assert caser(100, 4) == 85_800
    assert caser(50, 4) == 37_900


class Trace:
    """A linked trace: the operators of the forward pass with their shapes."""

    def __init__(self, path):
        self.nodes = {node["id"]: node for node in json.loads(path.read_text())["nodes"]}

    def caller(self, node):
        callers = node["ctrl_deps"]
        return self.nodes.get(callers[0] if isinstance(callers, list) else callers)

    def is_backward(self, node):
        while node is not None and not node["name"].startswith("autograd::engine::evaluate_function"):
            caller = self.caller(node)
            node = None if caller is node else caller
        return node is not None

    def forward_nodes(self, name):
        return (node for node in self.nodes.values() if node["name"] == name and not self.is_backward(node))

    def forward(self, name):
        """Yields shapes of the inputs and outputs of the operators of that name."""
        for node in self.forward_nodes(name):
            yield node["inputs"]["shapes"], node["outputs"]["shapes"]

    def macs(self):
        total = 0
        for node in self.forward_nodes("aten::convolution"):
            (x, weight, *_), (out, *_) = node["inputs"]["shapes"], node["outputs"]["shapes"]
            transposed = node["inputs"]["values"][6]
            total += math.prod(x if transposed else out) * math.prod(weight[1:])
        for name, left in (("aten::mm", 0), ("aten::bmm", 0), ("aten::addmm", 1), ("aten::baddbmm", 1)):
            for inputs, (out, *_) in self.forward(name):
                total += math.prod(out) * inputs[left][-1]
        for (x, of_input, of_state, *_), _ in self.forward("aten::mkldnn_rnn_layer"):
            total += math.prod(x[:-1]) * (math.prod(of_input) + math.prod(of_state))
        return total


# Counts that depend on the samples of the step.


def captioned(trace):
    """Returns the count for two captions, with the LSTM's steps of the longer one and six words to choose from."""
    (x, *_), _ = next(trace.forward("aten::mkldnn_rnn_layer"))
    (said,) = [out[0] for _, (out, *_) in trace.forward("aten::addmm") if out[1] == 6]
    return 2 * (inception(224) + 2048 * 299) + math.prod(x[:-1]) * 4 * 512 * (299 + 512) + said * 512 * 6


def heard(trace):
    """Returns the count for one utterance."""
    (x, *_), _ = next(trace.forward("aten::convolution"))
    return deep_speech([x[3]])


def embedded(trace):
    """Returns the count for the number of pictures of the first convolution, and each with each."""
    (x, *_), _ = next(trace.forward("aten::convolution"))
    tables = len(list(trace.forward("aten::mm")))  # none if all show one person
    return x[0] * (resnet((224, 224), (3, 4, 6, 3))[0] + 2048 * 128) + tables * x[0] * x[0] * 128


def detected(trace):
    """Returns the count for as many proposals as the layer of the classes has rows."""
    (regions,) = [out[0] for _, (out, *_) in trace.forward("aten::addmm") if out[1] == 21]
    return detector((10, 1000), regions)


def attention(texts, seen, width):
    """Returns the count for texts [N, T] that attend to others [N, S]: four linear layers, products with all keys,
    and of weights with all values."""
    (n, t), (_, s) = texts, seen
    return n * (2 * t + 2 * s) * width**2 + 2 * n * t * s * width


def translated(trace):
    """Returns the count for the Transformer's six layers twice. Both languages share eleven words."""
    source, target = [index for (_, index, *_), _ in trace.forward("aten::embedding")]
    (said,) = [out[0] for _, (out, *_) in trace.forward("aten::mm") if out[1] == 11]
    layers = attention(source, source, 512) + attention(target, target, 512) + attention(target, source, 512)
    hidden = (math.prod(source) + math.prod(target)) * 2 * 512 * 2048
    return 6 * (layers + hidden) + said * 512 * 11


def summarized(trace):
    """Of texts of 55 words, with as many steps as the longest summary has words and its end; there are 14 to choose from."""
    width, hidden, words = 256, 512, 14
    ((length, texts, _),) = {tuple(x) for (x, *_), _ in trace.forward("aten::mkldnn_rnn_layer")}
    (said,) = [out[0] // texts for _, (out, *_) in trace.forward("aten::addmm") if out[1] == words]
    places = texts * length
    encoder = 2 * places * 4 * hidden * (width + hidden) + 2 * texts * 2 * hidden * hidden + places * (2 * hidden) ** 2
    step = (2 * hidden + width) * width + 4 * hidden * (width + hidden) + (5 * hidden + width)
    attention = (2 * hidden) ** 2 + length * 3 * 2 * hidden  # to the text
    past = said * hidden**2 + (said - 1) * hidden**2 + sum(range(said)) * 2 * hidden
    return encoder + texts * (said * (step + attention + 4 * hidden * hidden + hidden * words) + past)


def recurrent_codec(pixels, iterations):
    """A cell of 4 × 4 pixels a place of the first LSTM, and so on; the state is convolved from the second iteration on."""
    first = pixels // 4 * 27 * 64
    gates, states = 0, 0
    for shrunk, inner, out, side in ((16, 64, 256, 1), (64, 256, 512, 1), (256, 512, 512, 1),
                                     (256, 512, 512, 1), (64, 128, 512, 1), (16, 128, 256, 3), (4, 64, 128, 3)):  # fmt: skip
        gates += pixels // shrunk * 4 * out * 9 * inner
        states += pixels // shrunk * 4 * out * side * side * out
    bits = pixels // 256 * 2 * 32 * 512 + pixels * 32 * 3
    return iterations * (first + gates + bits) + (iterations - 1) * states


def reconstructed(_):
    """Of one picture: three convolutions, four linear layers, three transposed convolutions from side 4 to 32."""
    convolutions = 25 * (32**2 * 3 * 64 + 16**2 * 64 * 128 + 8**2 * 128 * 256)
    growing = 4**3 * 512 * 256 * 4**3 + 8**3 * 256 * 96 * 5**3 + 16**3 * 96 * 6**3
    return convolutions + perceptron(8 * 8 * 256, 1024, 1024, 512, 4**3 * 512) + growing


def predicted(_):
    """Of a video of ten frames: CDNA nine times, whose sides are 32, 16 and 8 inside."""
    recurrent = 32**2 * (2 * 64 * 128 + 128 * 128) + 16**2 * (96 * 256 + 128 * 256 + 192 * 256) + 8**2 * 192 * 512
    smaller = 32**2 * 3 * 32 * 25 + 16**2 * 32 * 32 * 9 + 8**2 * (64 * 64 * 9 + 74 * 64)
    larger = 9 * (8**2 * 128 * 128 + 16**2 * 96 * 96 + 32**2 * 64 * 64)
    moved = 8**2 * 128 * 250 + 64**2 * 10 * 3 * 25
    return 9 * (25 * recurrent + smaller + larger + moved + 64**2 * 64 * (3 + 12) + 10 * 5)


def masked(trace):
    """Returns the count for BERT's twelve layers, the first words' answer, and those of the masked words, of
    fourteen."""
    texts = next(iter(trace.forward("aten::embedding")))[0][1]
    said = sum(out[0] for _, (out, *_) in trace.forward("aten::mm") if out[1] == 14)
    layers = 12 * (attention(texts, texts, 768) + math.prod(texts) * 2 * 768 * 3072)
    return layers + texts[0] * (768 * 768 + 768 * 2) + said * (768 * 768 + 768 * 14)


def searched(trace):
    """Returns the count for two windows of 35 words with thirteen numbers, and five times the only window of validation text.
    Each cell has a layer of the gate and of what passes it for the words, the state, and eleven nodes. Six times the
    controller makes 23 choices: of four activations, and of earlier nodes."""
    word = 13 * 1000 * 2000 + 1000 * 13
    cell = 23 * 2 * 400 * 100 + 100 * (12 * 4 + sum(range(1, 12)))
    return (2 + 5) * 35 * word + 6 * cell


def perceptron(*widths):
    return sum(a * b for a, b in zip(widths, widths[1:]))


# A chosen item and four others.
NEUMF = 5 * (perceptron(256, 256, 128, 64) + 64 + 64)
# The products of all pairs of 27 vectors are computed twice, and each with itself.
DLRM = perceptron(13, 512, 256, 64, 16) + 27 * 27 * 16 + perceptron(16 + 27 * 26 // 2, 512, 256, 1)


# Forward multiplications of a step of each task.
MACS = {
    "image-classification": lambda _: 4_089_184_256,
    "image-to-text": captioned,
    "image-to-image": lambda _: CYCLEGAN,
    "speech-recognition": heard,
    "image-generation": lambda _: WGAN,
    "text-to-text": translated,
    "face-embedding": embedded,
    "3d-face-recognition": lambda _: resnet((224, 224), (3, 4, 6, 3))[0] + 112 * 112 * 64 * 49 + 2048 * 253,
    "object-detection": detected,
    "video-prediction": predicted,
    "image-compression": lambda _: recurrent_codec(32 * 32, 16),
    "3d-object-reconstruction": reconstructed,
    "summarization": summarized,
    # Distorting a digit needs a map too.
    "spatial-transformer": lambda _: 2 * (SPATIAL_TRANSFORMER + 28 * 28 * 3 * 2),
    "learning-to-rank": lambda _: 8 * caser(100, 4),
    "recommendation": lambda _: 8 * NEUMF,
    "architecture-search": searched,
    "advertising": lambda _: 8 * DLRM,
    "language-modelling": masked,
}

# A benchmark of these takes as long as their replay, 10 to 30 s, and shows nothing that those of the others lack.
LONG = {
    "architecture-search", "face-embedding", "image-compression", "image-to-image", "language-modelling",
    "object-detection", "speech-recognition", "video-prediction",
}  # fmt: skip


@pytest.mark.parametrize("task", MACS)
def test_a_step_at_paper_scale_is_a_trace(task, tmp_path):
    write, batch = PAPER_DATA[task]
    write(tmp_path)
    etude("suite", "run", task, "--scale", "paper", "--data", tmp_path, "--threads", 1, "--batch", batch,
          "--warmup", 0, "--iterations", 1, "--record", tmp_path)  # fmt: skip
    etude("convert", tmp_path / task, "--to", "linked", "-o", tmp_path / "linked")
    trace = Trace(tmp_path / "linked/linked.0.json")
    assert trace.macs() == MACS[task](trace)

    report = json.loads(etude("replay", tmp_path / task, "--json", "--warmup", 0, "--iterations", 1))
    assert report["skipped"] == [] and report["operators"]["total"] > 50
    assert report["same_kernels"] > 0.99
    if task not in LONG:
        etude("benchmark", "-q", tmp_path / task, "-o", tmp_path / "bench", "--warmup", 0, "--iterations", 1)


def test_all_tasks_are_here():
    listed = json.loads(etude("suite", "list", "--json"))["tasks"]
    assert {task["id"] for task in listed} == set(MACS)
