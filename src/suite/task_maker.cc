#include "src/suite/task_maker.h"

#include <algorithm>
#include <array>

#include "src/suite/task.h"
#include "src/suite/tasks/advertising.h"
#include "src/suite/tasks/architecture_search.h"
#include "src/suite/tasks/face_embedding.h"
#include "src/suite/tasks/face_recognition.h"
#include "src/suite/tasks/image_classification.h"
#include "src/suite/tasks/image_compression.h"
#include "src/suite/tasks/image_generation.h"
#include "src/suite/tasks/image_to_image.h"
#include "src/suite/tasks/image_to_text.h"
#include "src/suite/tasks/language_modelling.h"
#include "src/suite/tasks/learning_to_rank.h"
#include "src/suite/tasks/object_detection.h"
#include "src/suite/tasks/object_reconstruction.h"
#include "src/suite/tasks/recommendation.h"
#include "src/suite/tasks/spatial_transformer.h"
#include "src/suite/tasks/speech_recognition.h"
#include "src/suite/tasks/summarization.h"
#include "src/suite/tasks/text_to_text.h"
#include "src/suite/tasks/video_prediction.h"

namespace etude::suite {
namespace {

constexpr std::array kMakers = {
    TaskMaker{.id = "image-classification", .make = MakeImageClassification},
    TaskMaker{.id = "image-generation", .make = MakeImageGeneration},
    TaskMaker{.id = "text-to-text", .make = MakeTextToText, .find_data_set = FindTranslations},
    TaskMaker{.id = "image-to-text", .make = MakeImageToText},
    TaskMaker{.id = "image-to-image", .make = MakeImageToImage},
    TaskMaker{.id = "speech-recognition",
              .make = MakeSpeechRecognition,
              .find_data_set = FindSpeechDataSet},
    TaskMaker{.id = "face-embedding", .make = MakeFaceEmbedding},
    TaskMaker{.id = "3d-face-recognition", .make = MakeFaceRecognition},
    TaskMaker{.id = "object-detection", .make = MakeObjectDetection},
    TaskMaker{.id = "recommendation", .make = MakeRecommendation},
    TaskMaker{.id = "video-prediction", .make = MakeVideoPrediction},
    TaskMaker{.id = "image-compression", .make = MakeImageCompression},
    TaskMaker{.id = "3d-object-reconstruction", .make = MakeObjectReconstruction},
    TaskMaker{.id = "summarization", .make = MakeSummarization},
    TaskMaker{.id = "spatial-transformer", .make = MakeSpatialTransformer},
    TaskMaker{.id = "learning-to-rank", .make = MakeLearningToRank},
    TaskMaker{.id = "architecture-search", .make = MakeArchitectureSearch},
    TaskMaker{.id = "advertising", .make = MakeAdvertising},
    TaskMaker{.id = "language-modelling", .make = MakeLanguageModelling},
};

}  // namespace

const TaskMaker* FindMaker(std::string_view id) {
  const auto found = std::ranges::find(kMakers, id, &TaskMaker::id);
  return found == kMakers.end() ? nullptr : &*found;
}

}  // namespace etude::suite
