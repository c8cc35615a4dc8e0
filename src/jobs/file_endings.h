#pragma once

#include <span>
#include <string>
#include <string_view>

namespace etude {

// Returns the ending of a file's name that determines its format, in lower case: ".json" for
// "a.json.gz", "" if there is none.
std::string FormatEnding(std::string_view path);

// Returns why an output may not have the name `path`, and "" if it may. The output is a file in the
// format of one of `endings`, or `other`, such as "a folder" (each may be missing). The name must
// not end like those of another format. An existing folder may have any name.
std::string WrongEnding(const std::string& path, std::span<const std::string_view> endings,
                        std::string_view other = "a folder");

}  // namespace etude
