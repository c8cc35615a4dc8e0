#pragma once

#include <memory>
#include <string>

#include "src/base/result.h"
#include "src/suite/task.h"

namespace etude::suite {

// C3: translation by a Transformer (Vaswani et al., 1706.03762). Paper scale: the base model on the
// user's pairs of sentences. Smoke scale: width 128 and two layers on synopses of Debian packages
// in English and German, or on generated sentences if that folder is missing.
Result<std::unique_ptr<Task>> MakeTextToText(const TaskOptions& options);

// Returns the training data set; "" if there is none.
std::string FindTranslations(Scale scale, const std::string& data);

}  // namespace etude::suite
