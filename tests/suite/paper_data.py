"""Small versions of the paper scales' data sets: a few samples each, in their layouts."""

import array
import ctypes
import ctypes.util
import json
import math
import os
import random
import struct

from pictures import grey_jpeg


def write_imagenet(data):
    for part, count in (("train", 2), ("val", 1)):
        for name in ("n01440764", "n01443537"):
            folder = data / "imagenet" / part / name
            folder.mkdir(parents=True)
            for number in range(count):
                (folder / f"{name}_{number}.JPEG").write_bytes(grey_jpeg(64))


def write_mnist(data):
    (data / "mnist").mkdir()
    for part, count in (("train", 4), ("t10k", 2)):
        images = struct.pack(">BBBBIII", 0, 0, 8, 3, count, 28, 28) + bytes(count * 784)
        labels = struct.pack(">BBBBI", 0, 0, 8, 1, count) + bytes(range(count))
        (data / f"mnist/{part}-images-idx3-ubyte").write_bytes(images)
        (data / f"mnist/{part}-labels-idx1-ubyte").write_bytes(labels)


def write_coco(data):
    # "a", "cat" and "." occur four times; "grey" does not.
    write_coco_part(data / "coco", "train2014", ["A cat.", "a CAT .", "A grey cat.", "a cat."])
    write_coco_part(data / "coco", "val2014", ["A dog.", "a cat"])


def write_coco_part(coco, part, captions):
    """Writes two pictures and captions of them in turn."""
    (coco / "annotations").mkdir(parents=True, exist_ok=True)
    (coco / part).mkdir(exist_ok=True)
    names = [f"COCO_{part}_{number:012}.jpg" for number in (7, 3)]
    for name in names:
        (coco / part / name).write_bytes(grey_jpeg(32))
    images = [{"id": number, "file_name": name, "height": 32} for number, name in zip((7, 3), names)]
    annotations = [{"image_id": (7, 3)[i % 2], "id": i, "caption": text} for i, text in enumerate(captions)]
    text = json.dumps({"info": {}, "images": images, "licenses": [], "annotations": annotations})
    (coco / f"annotations/captions_{part}.json").write_text(text)


def tone(hertz, seconds, rate):
    """Returns a tone with a little noise, as 16-bit samples."""
    noise = random.Random(hertz)
    count = int(seconds * rate)
    return array.array(
        "h",
        (int(8000 * math.sin(2 * math.pi * hertz * i / rate) + noise.uniform(-50, 50)) for i in range(count)),
    )


class SoundInfo(ctypes.Structure):
    _fields_ = [
        ("frames", ctypes.c_int64),
        ("rate", ctypes.c_int),
        ("channels", ctypes.c_int),
        ("format", ctypes.c_int),
        ("sections", ctypes.c_int),
        ("seekable", ctypes.c_int),
    ]


def write_flac(path, samples, rate):
    """Writes FLAC with libsndfile, whose format 0x17 is FLAC with 16 bits."""
    library = ctypes.CDLL(ctypes.util.find_library("sndfile"))
    library.sf_open.restype = ctypes.c_void_p
    info = SoundInfo(rate=rate, channels=1, format=0x170002)
    file = ctypes.c_void_p(library.sf_open(os.fsencode(path), 0x20, ctypes.byref(info)))
    assert file
    library.sf_writef_short.restype = ctypes.c_int64
    pointer = (ctypes.c_short * len(samples)).from_buffer(samples)
    assert library.sf_writef_short(file, pointer, ctypes.c_int64(len(samples))) == len(samples)
    library.sf_close(file)


SPEECH = {
    "train-clean-100/84/121/84-121": ["0000 GO DO YOU HEAR", "0001 I DON'T", "0002 NO"],
    "test-clean/61/7/61-7": ["0000 SO NO ONE", "0001 NO"],
}


def write_librispeech(data):
    for chapter, lines in SPEECH.items():
        stem = data / "LibriSpeech" / chapter
        stem.parent.mkdir(parents=True)
        texts = []
        for line in lines:
            number, text = line.split(" ", 1)
            texts.append(f"{stem.name}-{number} {text}\n")
            write_flac(f"{stem}-{number}.flac", tone(500, 0.05 * len(text), 16000), 16000)
        stem.with_name(stem.name + ".trans.txt").write_text("".join(texts))


# So narrow that the network gets 1000 × 10 pixels instead of 1000 × 600.
VOC_PICTURE = grey_jpeg(100, 1)
VOC_ANNOTATION = """<annotation>
  <size><width>100</width><height>1</height><depth>3</depth></size>
  <object><name>person</name><difficult>0</difficult>
    <bndbox><xmin>41</xmin><ymin>1</ymin><xmax>60</xmax><ymax>1</ymax></bndbox></object>
</annotation>
"""


def write_voc(data):
    folder = data / "VOCdevkit/VOC2007"
    for part in ("ImageSets/Main", "Annotations", "JPEGImages"):
        (folder / part).mkdir(parents=True)
    for part, name in (("trainval", "000001"), ("test", "000002")):
        (folder / f"ImageSets/Main/{part}.txt").write_text(name + "\n")
        (folder / f"Annotations/{name}.xml").write_text(VOC_ANNOTATION)
        (folder / f"JPEGImages/{name}.jpg").write_bytes(VOC_PICTURE)


def write_faces(data):
    """Writes VGGFace2's folders with three people, one of whom has one picture, and pairs of LFW."""
    for person, count in (("n000002", 3), ("n000003", 2), ("n000004", 1)):
        folder = data / "vggface2/train" / person
        folder.mkdir(parents=True)
        for number in range(count):
            (folder / f"{number + 1:04}_{number}.jpg").write_bytes(grey_jpeg(64))
    for person in ("Ann", "Bob"):
        folder = data / "lfw" / person
        folder.mkdir(parents=True)
        for number in (1, 2):
            (folder / f"{person}_{number:04}.jpg").write_bytes(grey_jpeg(64))
    (data / "lfw/pairs.txt").write_text("2\t1\nAnn\t1\t2\nAnn\t1\tBob\t1\nBob\t1\t2\nBob\t2\tAnn\t2\n")


def write_scans(data):
    """Writes pictures of two people and the distance of each pixel, in one byte or two."""
    for part, count in (("train", 2), ("test", 1)):
        for person in ("ann", "bob"):
            folder = data / "rgbd-faces" / part / person
            folder.mkdir(parents=True)
            for number in range(count):
                (folder / f"{number}.jpg").write_bytes(grey_jpeg(64))
                most, size = ((255, 1), (65535, 2))[number % 2]
                header = b"P5\n# millimetres\n64 64\n%d\n" % most
                (folder / f"{number}_depth.pgm").write_bytes(header + bytes(64 * 64 * size))


def write_lsun(data):
    """Pictures of one class, wide and high ones."""
    for part, sizes in (("train", [(96, 64)] * 6 + [(64, 96)] * 4), ("val", [(64, 64), (80, 64), (64, 80)])):
        folder = data / "lsun" / part / "bedroom"
        folder.mkdir(parents=True)
        for number, size in enumerate(sizes):
            (folder / f"{number}.jpg").write_bytes(grey_jpeg(*size))


def write_cityscapes(data):
    """Photographs and label maps in the layout of CycleGAN's data sets, two of them pairs."""
    for part, count in (("trainA", 3), ("trainB", 2), ("testA", 2), ("testB", 2)):
        folder = data / "cityscapes" / part
        folder.mkdir(parents=True)
        for number in range(count):
            (folder / f"{number}_{part[-1]}.jpg").write_bytes(grey_jpeg(64, 48))


def crc32c_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


CRC32C = crc32c_table()


def tf_record(data):
    """A record of a TFRecord file: length, its checksum, the data, theirs."""

    def checksum(data):
        crc = 0xFFFFFFFF
        for byte in data:
            crc = crc >> 8 ^ CRC32C[(crc ^ byte) & 255]
        crc ^= 0xFFFFFFFF
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    length = struct.pack("<Q", len(data))
    return length + checksum(length) + data + checksum(data)


def field(number, data):
    """A protobuf field of bytes."""
    size, varint = len(data), b""
    while size > 127:
        varint += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + varint + bytes([size]) + data


def tf_example(lists):
    """A tf.train.Example of lists of floats, or of one string each."""
    entries = b""
    for name, values in lists.items():
        if isinstance(values, bytes):
            own = field(1, field(1, values))
        else:
            own = field(2, field(1, struct.pack(f"<{len(values)}f", *values)))
        entries += field(1, field(1, name.encode()) + field(2, own))
    return field(1, entries)


def write_push(data, videos=None):
    """Two or more files with a video each: JPEG images of 640 × 512, grey ones unless `videos` has others."""
    (data / "push/push_train").mkdir(parents=True)
    for number, video in enumerate(videos or [[grey_jpeg(640, 512)] * 10] * 2):
        example = {}
        for time, image in enumerate(video):
            example[f"move/{time}/image/encoded"] = image
            example[f"move/{time}/commanded_pose/vec_pitch_yaw"] = [0.1 * time] * 5
            example[f"move/{time}/endeffector/vec_pitch_yaw"] = [0.1 * time] * 5
        (data / f"push/push_train/train-{number}").write_bytes(tf_record(tf_example(example)))


def write_shapenet(data, volumes=None):
    """Black chairs as in the program of Perspective Transformer Nets; `volumes` of 32³ values for training and for validation."""
    (data / "shapenet").mkdir()
    empty = [0.0] * 32**3
    for part, shapes in (volumes or {"train": [empty, empty], "val": [empty]}).items():
        chairs = [{"image": [0.0] * (24 * 64 * 64 * 3), "mask": [0.0] * (24 * 64 * 64), "vox": shape} for shape in shapes]
        (data / f"shapenet/03001627_{part}.tfrecords").write_bytes(b"".join(tf_record(tf_example(chair)) for chair in chairs))


def write_gowalla(data, users, items):
    folder = data / "gowalla" / "test"
    folder.mkdir(parents=True)
    draw = random.Random(1)
    chosen = {user: draw.sample(range(items), 16) for user in range(users)}
    # One user has every item, and is not evaluated.
    lines = {"train": [f"all i{item} 1" for item in range(items)], "test": []}
    for user, own in chosen.items():
        lines["train"] += [f"u{user} i{item} 1" for item in own[:12]]
        lines["test"] += [f"u{user} i{item} 1" for item in own[12:]]
    for part, text in lines.items():
        (folder / f"{part}.txt").write_text("\n".join(text) + "\n")


def write_movielens(data, users, items):
    """Writes ratings in MovieLens 20M's format, those of a user not in order of time."""
    folder = data / "ml-20m"
    folder.mkdir(parents=True)
    draw = random.Random(1)
    lines = ["userId,movieId,rating,timestamp"]
    for user in range(users):
        chosen = draw.sample(range(items), 12)
        times = draw.sample(range(10**9, 10**9 + 1000), 12)
        lines += [f"{user + 1},{10 * item + 3},{draw.randint(1, 10) / 2},{time}" for item, time in zip(chosen, times)]
    (folder / "ratings.csv").write_text("\n".join(lines) + "\n")


def write_criteo(data, lines):
    """Writes clicks in the format of Criteo's Kaggle set, some fields empty."""
    folder = data / "criteo"
    folder.mkdir(parents=True)
    draw = random.Random(1)
    text = ""
    for _ in range(lines):
        numbers = [draw.choice(["", "-1", "0", "7", "1234"]) for _ in range(13)]
        categories = [draw.choice(["", "68fd1e64", "80e26c9b", "fb936136"]) for _ in range(26)]
        text += "\t".join([str(draw.randint(0, 1)), *numbers, *categories]) + "\n"
    (folder / "train.txt").write_text(text)


# Texts and titles; "rex" and "tom" are held out only.
ARTICLES = {
    "train.article": ["the dog sees a cat , and a cat sees the dog .", "a dog sees the dog .", "the cat runs .", "a cat runs and runs ."],
    "train.title": ["dog sees cat", "dog sees dog", "cat runs", "cat runs on"],
    "valid.article.filter": ["a dog named rex sees the cat .", "the cat runs , tom ."],
    "valid.title.filter": ["dog rex sees cat", "cat runs"],
}


def write_gigaword(data):
    (data / "gigaword").mkdir()
    for name, texts in ARTICLES.items():
        (data / f"gigaword/{name}.txt").write_text("".join(text + "\n" for text in texts))


PAIRS = {
    "train": ["a dog|ein hund", "a dog|ein hund", "a cat|eine katze", "a cat|eine katze"],
    "test": ["a cat|eine katze", "dog|hund"],
}


def write_en_de(data):
    (data / "en-de").mkdir()
    for part, pairs in PAIRS.items():
        for language, texts in zip(("en", "de"), zip(*(pair.split("|") for pair in pairs))):
            (data / f"en-de/{part}.{language}").write_text("".join(text + "\n" for text in texts))


DOCUMENTS = {
    "train": ["the dog sees a cat", "it runs", "", "cats sleep", "", "a cat sees the dog", "it sleeps", "dogs run", "", "it", "runs"],
    "test": ["a dog sleeps", "it runs", "", "the cat", "it sees"],
}
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "a", "it", "dog", "cat", "##s", "see", "run", "sleep"]


def write_wikipedia(data):
    (data / "wikipedia").mkdir()
    for part, sentences in DOCUMENTS.items():
        (data / f"wikipedia/{part}.txt").write_text("\n".join(sentences) + "\n")
    (data / "wikipedia/vocab.txt").write_text("\n".join(PIECES) + "\n")


def ptb_text(lines):
    """Returns lines of seven words from a vocabulary of twelve, "<unk>" among them."""
    words = ["<unk>", "N", "the", "a", "fund", "bank", "rose", "fell", "shares", "of", "in", "year"]
    return "".join(" " + " ".join(words[(i * i + 3 * i * j + j) % 12] for j in range(7)) + " \n" for i in range(lines))


def write_ptb(data):
    # 128 words and ends of lines for training, 48 for validating and testing.
    (data / "ptb").mkdir()
    for part, lines in (("train", 16), ("valid", 6), ("test", 6)):
        (data / f"ptb/ptb.{part}.txt").write_text(ptb_text(lines))


# By task: writes its data; samples per step.
PAPER_DATA = {
    "image-classification": (write_imagenet, 1),
    "image-to-text": (write_coco, 2),
    "image-to-image": (write_cityscapes, 1),
    "speech-recognition": (write_librispeech, 1),
    "image-generation": (write_lsun, 5),
    "text-to-text": (write_en_de, 2),
    # Two samples, one or two other pictures of the same person for each, and the table of their distances.
    "face-embedding": (write_faces, 2),
    "3d-face-recognition": (write_scans, 1),
    "object-detection": (write_voc, 1),
    "video-prediction": (write_push, 1),
    "image-compression": (write_imagenet, 1),
    "3d-object-reconstruction": (write_shapenet, 1),
    "summarization": (write_gigaword, 2),
    "spatial-transformer": (write_mnist, 2),
    "learning-to-rank": (lambda data: write_gowalla(data, 6, 30), 8),
    "recommendation": (lambda data: write_movielens(data, 6, 40), 8),
    "architecture-search": (write_ptb, 2),
    "advertising": (lambda data: write_criteo(data, 70), 8),
    "language-modelling": (write_wikipedia, 2),
}
