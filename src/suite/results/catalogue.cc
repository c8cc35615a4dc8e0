#include "src/suite/results/catalogue.h"

#include <algorithm>
#include <array>

namespace etude::suite {
namespace {

constexpr Metric kAccuracy{"top-1 accuracy", true};
constexpr Metric kWordErrors{"word error rate", false};

constexpr std::array kTasks = {
    TaskFacts{.id = "image-classification",
              .aibench = "C1",
              .title = "Image classification",
              .model = "ResNet-50",
              .paper = "He et al., 1512.03385",
              .metric = kAccuracy,
              .baseline = "the most frequent class",
              .smoke_data = "4,000 handwritten digits of MNIST",
              .paper_data = "ImageNet",
              .smoke = {0.97, Origin::kMeasured},
              .published = Target{0.749, Origin::kFound}},
    TaskFacts{.id = "text-to-text",
              .aibench = "C3",
              .title = "Text to text",
              .model = "Transformer base",
              .paper = "Vaswani et al., 1706.03762",
              .metric = {"token accuracy", true},
              .baseline = "a dictionary or the most frequent next word",
              .smoke_data = "11,000 synopses of Debian packages in two languages",
              .paper_data = "WMT or Multi30k, English to German",
              .smoke = {0.55, Origin::kMeasured},
              .published = Target{0.55, Origin::kRecalled}},
    TaskFacts{.id = "image-to-text",
              .aibench = "C4",
              .title = "Image to text",
              .model = "Neural Image Caption (Inception-v3, LSTM)",
              .paper = "Vinyals et al., 1411.4555",
              .metric = {"perplexity", false},
              .baseline = "word frequencies",
              .smoke_data = "16,000 generated scenes of coloured shapes",
              .paper_data = "MS COCO 2014",
              .smoke = {1.25, Origin::kMeasured},
              .published = Target{4.2, Origin::kRecalled}},
    TaskFacts{.id = "speech-recognition",
              .aibench = "C6",
              .title = "Speech recognition",
              .model = "DeepSpeech2",
              .paper = "Amodei et al., 1512.02595",
              .metric = kWordErrors,
              .baseline = "always the most frequent word",
              .smoke_data = "strings of one to five spoken digits",
              .paper_data = "LibriSpeech",
              .smoke = {0.05, Origin::kMeasured},
              .published = Target{0.0533, Origin::kRecalled}},
    TaskFacts{.id = "face-embedding",
              .aibench = "C7",
              .title = "Face embedding",
              .model = "FaceNet (ResNet-50)",
              .paper = "Schroff et al., 1503.03832",
              .metric = {"verification accuracy", true},
              .baseline = "cosines of pixels",
              .smoke_data = "300 photographs of 30 people, 10 others held out",
              .paper_data = "VGGFace2, LFW",
              .smoke = {0.9, Origin::kMeasured},
              .published = Target{0.9, Origin::kRecalled}},
    TaskFacts{.id = "3d-face-recognition",
              .aibench = "C8",
              .title = "3D face recognition",
              .model = "ResNet-50 on colour and depth",
              .paper = "He et al., 1512.03385",
              .metric = {"rank-1 accuracy", true},
              .baseline = "the most frequent person",
              .smoke_data = "1,200 generated scans of 20 heads",
              .paper_data = "scans of 253 people",
              .smoke = {0.95, Origin::kMeasured},
              .published = Target{0.9464, Origin::kRecalled}},
    TaskFacts{.id = "object-detection",
              .aibench = "C9",
              .title = "Object detection",
              .model = "Faster R-CNN, ResNet-101",
              .paper = "Ren et al., 1506.01497",
              .metric = {"mAP at 0.5", true},
              .baseline = "the mean box of each class",
              .smoke_data = "2,000 generated images of shapes",
              .paper_data = "VOC 2007",
              .smoke = {0.9, Origin::kMeasured},
              .published = Target{0.75, Origin::kRecalled}},
    TaskFacts{.id = "recommendation",
              .aibench = "C10",
              .title = "Recommendation",
              .model = "NeuMF",
              .paper = "He et al., 1708.05031",
              .metric = {"HR@10", true},
              .baseline = "the most frequent items",
              .smoke_data = "destinations of 3,000 airplanes in 2013",
              .paper_data = "MovieLens 20M",
              .smoke = {0.8, Origin::kMeasured},
              .published = Target{0.635, Origin::kRecalled}},
    TaskFacts{.id = "spatial-transformer",
              .aibench = "C15",
              .title = "Spatial transformer",
              .model = "STN",
              .paper = "Jaderberg et al., 1506.02025",
              .metric = kAccuracy,
              .baseline = "the most frequent class",
              .smoke_data = "4,000 handwritten digits of MNIST, distorted",
              .paper_data = "MNIST, distorted",
              .smoke = {0.9, Origin::kMeasured},
              .published = Target{0.99, Origin::kRecalled}},
    TaskFacts{.id = "learning-to-rank",
              .aibench = "C16",
              .title = "Learning to rank",
              .model = "Caser, distilled",
              .paper = "Tang & Wang, KDD 2018",
              .metric = {"precision@10", true},
              .baseline = "the most frequent items",
              .smoke_data = "destinations of 3,000 airplanes in 2013",
              .paper_data = "Gowalla",
              .smoke = {0.46, Origin::kMeasured},
              .published = Target{0.1458, Origin::kRecalled}},
    TaskFacts{.id = "advertising",
              .aibench = "C18",
              .title = "Advertising",
              .model = "DLRM",
              .paper = "Naumov et al., 1906.00091",
              .metric = {"AUC", true},
              .baseline = "logistic regression",
              .smoke_data = "100,000 generated clicks",
              .paper_data = "Criteo (Kaggle)",
              .smoke = {0.775, Origin::kMeasured},
              .published = {}},
    TaskFacts{.id = "language-modelling",
              .aibench = "C19",
              .title = "Language modelling",
              .model = "BERT-base",
              .paper = "Devlin et al., 1810.04805",
              .metric = {"masked-LM accuracy", true},
              .baseline = "the most frequent word, alone or behind its neighbour",
              .smoke_data = "descriptions of 19,000 Debian packages",
              .paper_data = "Wikipedia",
              .smoke = {0.32, Origin::kMeasured},
              .published = std::nullopt},
};

}  // namespace

std::string_view Name(Origin origin) {
  switch (origin) {
    case Origin::kMeasured: return "measured";
    case Origin::kFound: return "found";
    case Origin::kRecalled: return "recalled";
  }
  return "";
}

std::span<const TaskFacts> Catalogue() { return kTasks; }

const TaskFacts* FindTask(std::string_view name) {
  const auto found = std::ranges::find_if(
      kTasks, [&](const TaskFacts& task) { return name == task.id || name == task.aibench; });
  return found == kTasks.end() ? nullptr : &*found;
}

}  // namespace etude::suite
