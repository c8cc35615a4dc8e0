#pragma once

#include <span>
#include <string>
#include <string_view>

namespace etude {

// The ending of a file's name that says its format, in lower case: ".json" of "a.json.gz"; "" if
// there is none.
std::string FormatEnding(std::string_view path);

// Why what is written may not be called `path`: it is to be a file of the format of one of
// `endings`, or `other` than a file, as "a folder" (each may be missing), and the name ends as
// those of another format do. "" if it may; a folder that is there may have any name.
std::string WrongEnding(const std::string& path, std::span<const std::string_view> endings,
                        std::string_view other = "a folder");

}  // namespace etude
