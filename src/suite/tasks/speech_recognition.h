#pragma once

#include <memory>
#include <string>

#include "src/base/result.h"
#include "src/suite/task.h"

namespace etude::suite {

// C6: DeepSpeech2 (Amodei, 1512.02595) writes down what is said: LibriSpeech, letter by letter; at
// the smoke scale strings of digits, word by word, with one convolution and one recurrent layer.
Result<std::unique_ptr<Task>> MakeSpeechRecognition(const TaskOptions& options);
// Which data set it would learn from; "" if none is there.
std::string FindSpeechDataSet(Scale scale, const std::string& data);

}  // namespace etude::suite
