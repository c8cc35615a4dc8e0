#pragma once

#include <string>
#include <string_view>

#include "src/base/result.h"
#include "src/compat/et_converter.h"

namespace etude::compat {

// Writes what chakra_jsonizer writes for a Chakra trace: one JSON document for the metadata and one
// for each node, with nothing between them. kBadInput where it cannot decode a message.
Status WriteChakraJson(std::string_view et, const std::string& name, const Sink& sink);

}  // namespace etude::compat
