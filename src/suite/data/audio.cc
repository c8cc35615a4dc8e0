#include "src/suite/data/audio.h"

#include <memory>
#include <vector>

#include <fmt/format.h>
#ifdef ETUDE_SNDFILE
#include <sndfile.h>
#endif

#include "src/suite/nn/functional.h"

namespace etude::suite {
#ifdef ETUDE_SNDFILE
namespace {

constexpr int64_t kMostAudioValues = int64_t{1} << 28;  // of all channels

struct CloseAudio {
  void operator()(SNDFILE* file) const { sf_close(file); }
};

}  // namespace

Result<at::Tensor> ReadAudio(const std::string& path, int64_t rate) {
  SF_INFO info{};
  const std::unique_ptr<SNDFILE, CloseAudio> file(sf_open(path.c_str(), SFM_READ, &info));
  if (file == nullptr) {
    const ErrorCode code =
        sf_error(nullptr) == SF_ERR_SYSTEM ? ErrorCode::kIo : ErrorCode::kBadInput;
    return MakeError(code, fmt::format("{}: {}", path, sf_strerror(nullptr)));
  }
  if (info.samplerate != rate) {
    return BadInput(
        fmt::format("{}: found {} samples per second, expected {}", path, info.samplerate, rate));
  }
  if (info.channels < 1 || info.frames < 1 || info.frames > kMostAudioValues / info.channels) {
    return BadInput(fmt::format(
        "{}: found {} samples of {} channels, expected at least one and fewer than {} in total",
        path, info.frames, info.channels, kMostAudioValues));
  }
  std::vector<float> values(static_cast<size_t>(info.frames * info.channels));
  const int64_t read = sf_readf_float(file.get(), values.data(), info.frames);
  if (read != info.frames || sf_error(file.get()) != SF_ERR_NO_ERROR) {
    return BadInput(fmt::format("{}: found only {} of {} samples ({})", path, read, info.frames,
                                sf_strerror(file.get())));
  }
  return FromValues(values, {info.frames, info.channels}).mean(1);
}

#else

Result<at::Tensor> ReadAudio(const std::string& path, int64_t /*rate*/) {
  return Unavailable(path + ": reading audio requires a build with libsndfile");
}

#endif

}  // namespace etude::suite
