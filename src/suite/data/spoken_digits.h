#pragma once

#include <string>

#include "src/base/result.h"
#include "src/suite/data/speech.h"

namespace etude::suite {

// Reads strings of one to five spoken digits, one voice each, composed of recordings of single
// digits with pauses and noise. The recordings are the Free Spoken Digit Dataset in
// `folder`/free-spoken-digit-dataset/recordings/{digit}_{speaker}_{take}.wav with 8,000 samples per
// second; if it is missing, those synthesised by `etude suite setup`, in `folder`/spoken-digits.
// Takes 0 to 4 form the test set. The digits of each string are the same in all runs; the noise
// comes from PyTorch's generator. kUnavailable if both are missing.
Result<SpeechParts> ReadSpokenDigits(const std::string& folder);
// Returns the name of the data set that ReadSpokenDigits would read; "" if both are missing.
std::string FindSpokenDigits(const std::string& folder);

}  // namespace etude::suite
