#pragma once

#include <span>
#include <string>
#include <string_view>

namespace etude {

// The ending of a file's name that says its format, in lower case: ".json" of "a.json.gz"; "" if
// there is none.
std::string FormatEnding(std::string_view path);

// Why a file called `path`, which is to be of the format of one of `endings`, may not be: its name
// ends as those of another format do. "" if it may. Without `endings` it is to be `other` than a
// file, as "a folder", of which one that is there may have any name.
std::string WrongEnding(const std::string& path, std::span<const std::string_view> endings,
                        std::string_view other = "a folder");

}  // namespace etude
