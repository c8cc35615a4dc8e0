#include "src/suite/catalogue.h"

#include <algorithm>
#include <array>

#include "src/suite/task.h"
#include "src/suite/tasks/image_classification.h"
#include "src/suite/tasks/image_to_text.h"
#include "src/suite/tasks/spatial_transformer.h"

namespace etude::suite {
namespace {

constexpr Metric kAccuracy{"top-1 accuracy", true};

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
              .published = Target{0.749, Origin::kFound},
              .make = MakeImageClassification},
    TaskFacts{.id = "image-to-text",
              .aibench = "C4",
              .title = "Image to text",
              .model = "Neural Image Caption (Inception-v3, LSTM)",
              .paper = "Vinyals et al., 1411.4555",
              .metric = {"perplexity", false},
              .baseline = "the words' frequencies",
              .smoke_data = "16,000 generated scenes of coloured shapes",
              .paper_data = "MS COCO 2014",
              .smoke = {1.25, Origin::kMeasured},
              .published = Target{4.2, Origin::kRecalled},
              .make = MakeImageToText},
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
              .published = Target{0.99, Origin::kRecalled},
              .make = MakeSpatialTransformer},
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
