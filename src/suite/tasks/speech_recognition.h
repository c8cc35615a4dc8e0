#pragma once

#include <memory>
#include <string>

#include "src/base/result.h"
#include "src/suite/task.h"

namespace etude::suite {

// C6: speech recognition by DeepSpeech2 (Amodei, 1512.02595). Paper scale: LibriSpeech, letter by
// letter. Smoke scale: strings of digits, word by word, with one convolution and one recurrent
// layer.
Result<std::unique_ptr<Task>> MakeSpeechRecognition(const TaskOptions& options);
// Returns the data set that would be used; "" if there is none.
std::string FindSpeechDataSet(Scale scale, const std::string& data);

}  // namespace etude::suite
