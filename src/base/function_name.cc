#include "src/base/function_name.h"

#include <cstddef>

#include "src/base/ascii.h"

namespace etude {
namespace {

// Where the list of arguments begins with which `name` ends, behind a word or a template's own
// arguments; the end of `name` if there is none.
size_t ArgumentsOf(std::string_view name) {
  if (!name.ends_with(')')) return name.size();
  size_t depth = 0;
  for (size_t i = name.size(); i-- > 0;) {
    if (name[i] == ')') ++depth;
    if (name[i] != '(' || --depth != 0) continue;
    return i > 0 && (IsWord(name[i - 1]) || name[i - 1] == '>') ? i : name.size();
  }
  return name.size();
}

}  // namespace

std::string BareFunctionName(std::string_view name) {
  constexpr std::string_view kResult = "void ";
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  const bool is_function = name.starts_with(kResult) || name.find('<') != std::string_view::npos ||
                           ArgumentsOf(name) != name.size();
  if (!is_function) return std::string(name);
  if (name.starts_with(kResult)) name.remove_prefix(kResult.size());
  name = name.substr(0, ArgumentsOf(name));
  std::string bare;
  for (size_t i = 0; i < name.size();) {
    if (name.substr(i).starts_with(kAnonymous)) {
      i += kAnonymous.size();
      continue;
    }
    size_t end = i;
    while (end < name.size() && IsWord(name[end])) ++end;
    const bool is_scope = end > i && end + 2 < name.size() && name.substr(end, 2) == "::" &&
                          (IsWord(name[end + 2]) || name.substr(end + 2).starts_with(kAnonymous));
    if (is_scope) {
      i = end + 2;
      continue;
    }
    if (end == i) ++end;
    bare += name.substr(i, end - i);
    i = end;
  }
  return bare;
}

}  // namespace etude
