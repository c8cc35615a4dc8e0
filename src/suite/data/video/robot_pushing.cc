#include "src/suite/data/video/robot_pushing.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "src/base/text/folder_names.h"
#include "src/base/text/format_count.h"
#include "src/suite/data/jpeg.h"
#include "src/suite/nn/functional.h"

namespace etude::suite {
namespace {

constexpr size_t kParts = 20;  // equal parts of the files, of which one is held out

// Returns the central square of an image as [3, 64, 64].
Result<at::Tensor> FrameOf(const TfExample& example, int64_t time) {
  const std::string feature = fmt::format("move/{}/image/encoded", time);
  ETUDE_ASSIGN_OR_RETURN(const std::string_view bytes, example.Bytes(feature));
  ETUDE_ASSIGN_OR_RETURN(
      const at::Tensor image,
      DecodeJpeg(bytes, fmt::format("{}: '{}'", example.place(), feature), RobotPushing::kSide));
  const int64_t side = std::min(image.size(1), image.size(2));
  const at::Tensor square =
      image.narrow(1, (image.size(1) - side) / 2, side).narrow(2, (image.size(2) - side) / 2, side);
  if (side == RobotPushing::kSide) return square;
  return CropTo(square, 0, 0, side, side, RobotPushing::kSide);
}

// Returns the floats of all times: [10, count].
Result<at::Tensor> FloatsOf(const TfExample& example, std::string_view what, int64_t count) {
  std::vector<float> all;
  for (int64_t time = 0; time < RobotPushing::kFrames; ++time) {
    ETUDE_ASSIGN_OR_RETURN(
        const std::vector<float> values,
        example.Floats(fmt::format("move/{}/{}/vec_pitch_yaw", time, what), count));
    all.insert(all.end(), values.begin(), values.end());
  }
  return FromValues(all, {RobotPushing::kFrames, count});
}

}  // namespace

Result<RobotPushing> RobotPushing::Open(const std::string& folder, const RunContext& context) {
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) return Unavailable(folder + ": missing");
  ETUDE_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(folder));
  if (names.size() < 2) {
    return BadInput(fmt::format("{}: found {}, expected at least two TFRecord files", folder,
                                FormatCount(names.size(), "file")));
  }
  const size_t learned = names.size() * (kParts - 1) / kParts;
  RobotPushing sequences;
  for (const std::string& name : names) {
    ETUDE_ASSIGN_OR_RETURN(TfRecords file, TfRecords::Open(folder + "/" + name, context));
    const size_t number = sequences.files_.size();
    for (int64_t record = 0; record < file.size(); ++record) {
      sequences.places_.push_back({number, record});
    }
    if (number < learned) sequences.learned_ += file.size();
    sequences.files_.push_back(std::move(file));
  }
  return sequences;
}

Result<PushSequences> RobotPushing::Read(std::span<const int64_t> numbers) const {
  std::vector<at::Tensor> frames;
  std::vector<at::Tensor> actions;
  std::vector<at::Tensor> states;
  for (const int64_t number : numbers) {
    const Place& place = places_[static_cast<size_t>(number)];
    const TfRecords& file = files_[place.file];
    ETUDE_ASSIGN_OR_RETURN(const std::string record, file.Read(place.record));
    ETUDE_ASSIGN_OR_RETURN(const TfExample example,
                           TfExample::Parse(record, file.PlaceOf(place.record)));
    for (int64_t time = 0; time < kFrames; ++time) {
      ETUDE_ASSIGN_OR_RETURN(at::Tensor frame, FrameOf(example, time));
      frames.push_back(std::move(frame));
    }
    ETUDE_ASSIGN_OR_RETURN(at::Tensor action, FloatsOf(example, "commanded_pose", kActions));
    actions.push_back(std::move(action));
    ETUDE_ASSIGN_OR_RETURN(at::Tensor state, FloatsOf(example, "endeffector", kStates));
    states.push_back(std::move(state));
  }
  return PushSequences{Stack(frames, 0).unflatten(0, {std::ssize(numbers), kFrames}),
                       Stack(actions, 0), Stack(states, 0)};
}

}  // namespace etude::suite
