#pragma once

#include <string>

#include "src/base/result.h"
#include "src/suite/data/speech.h"

namespace etude::suite {

// Strings of one to five spoken digits, one voice each, put together of recordings of single digits
// with pauses and noise. The recordings are those of the Free Spoken Digit Dataset, in
// `folder`/free-spoken-digit-dataset/recordings/{digit}_{speaker}_{take}.wav with 8,000 samples a
// second; or, where that is not there, those that `etude suite setup` synthesises, in
// `folder`/spoken-digits. Takes 0 to 4 are held out. Which digits make which string is the same in
// all runs; the noise comes from PyTorch's generator. kUnavailable where neither is there.
Result<SpeechParts> ReadSpokenDigits(const std::string& folder);
// The name of the set that ReadSpokenDigits would read; "" where neither is there.
std::string FindSpokenDigits(const std::string& folder);

}  // namespace etude::suite
