#pragma once

#include <string>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/suite/data/speech.h"

namespace etude::suite {

// Reads LibriSpeech (Panayotov 2015) in the layout of its archives:
// `folder`/LibriSpeech/{part}/{speaker}/{chapter}/{speaker}-{chapter}.trans.txt, a line per
// utterance, and {speaker}-{chapter}-{number}.flac with 16,000 samples per second. The training set
// is the available parts train-*, the test set is test-clean. Symbols are the apostrophe, capitals
// and the space. kUnavailable if the folder or a part is missing.
Result<SpeechParts> ReadLibriSpeech(const std::string& folder, const RunContext& context);
// Returns the name of the data set that ReadLibriSpeech would read, with its parts; "" if there is
// none.
std::string FindLibriSpeech(const std::string& folder);

}  // namespace etude::suite
