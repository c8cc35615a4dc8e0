#pragma once

#include <string>

#include "src/base/result.h"
#include "src/base/run_context.h"
#include "src/suite/data/speech.h"

namespace etude::suite {

// LibriSpeech (Panayotov 2015) as its archives unpack: `folder`/LibriSpeech/{part}/{speaker}/
// {chapter}/{speaker}-{chapter}.trans.txt, a line an utterance, and
// {speaker}-{chapter}-{number}.flac beside it, with 16,000 samples a second. Learned from is what
// there is of the parts train-*; held out is test-clean. Symbols are the apostrophe, the capitals
// and the space. kUnavailable where the folder or a part is missing.
Result<SpeechParts> ReadLibriSpeech(const std::string& folder, const RunContext& context);
// The name of what ReadLibriSpeech would read, with its parts; "" where there is none.
std::string FindLibriSpeech(const std::string& folder);

}  // namespace etude::suite
