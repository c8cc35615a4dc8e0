#include "src/base/text/function_name.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <optional>

#include "src/base/text/ascii.h"

namespace etude {
namespace {

// Returns the position of the argument list that ends `name`, after a word or its template
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

constexpr std::string_view kMangled = "_Z";
constexpr std::string_view kKernelDescriptor = ".kd";

std::string_view WithoutDescriptor(std::string_view name) {
  if (name.size() > kKernelDescriptor.size() && name.ends_with(kKernelDescriptor)) {
    name.remove_suffix(kKernelDescriptor.size());
  }
  return name;
}

// Removes the length-prefixed identifier ("5aiter") from the front of `text`; nullopt if there is
// none.
std::optional<std::string_view> TakeIdentifier(std::string_view& text) {
  size_t length = 0;
  size_t digits = 0;
  while (digits < text.size() && IsDigit(text[digits])) {
    length = length * 10 + static_cast<size_t>(text[digits++] - '0');
    if (length > text.size()) return std::nullopt;
  }
  if (length == 0 || length > text.size() - digits) return std::nullopt;
  const std::string_view identifier = text.substr(digits, length);
  text.remove_prefix(digits + length);
  return identifier.starts_with("_GLOBAL__N") ? "(anonymous namespace)" : identifier;
}

// Returns true for names that are safe to decode. Names repeat their own parts by reference (S_,
// T_) and expand packs (Dp), so a decoded name may be exponentially longer; within these limits it
// has a few megabytes at most.
bool IsSmall(std::string_view mangled) {
  constexpr size_t kMostBytes = 1024;
  constexpr ptrdiff_t kMostReferences = 24;
  return mangled.size() <= kMostBytes && mangled.find("Dp") == std::string_view::npos &&
         std::ranges::count_if(mangled, [](char c) { return c == 'S' || c == 'T'; }) <=
             kMostReferences;
}

}  // namespace

std::string MangledFunctionPath(std::string_view name) {
  name = WithoutDescriptor(name);
  if (!name.starts_with(kMangled)) return {};
  name.remove_prefix(kMangled.size());
  const bool is_nested = name.starts_with('N');
  if (is_nested) {
    name.remove_prefix(1);
    while (!name.empty() && std::string_view("rVKRO").find(name.front()) != name.npos) {
      name.remove_prefix(1);
    }
  }
  std::string path;
  bool is_function = false;  // the last part is not just a namespace
  const auto add = [&](std::string_view part) {
    if (!path.empty()) path += "::";
    path += part;
  };
  if (name.starts_with("St")) {
    add("std");
    name.remove_prefix(2);
  }
  while (!name.empty()) {
    if (name.front() == 'L') name.remove_prefix(1);  // internal linkage
    const auto identifier = TakeIdentifier(name);
    if (!identifier) break;
    add(*identifier);
    is_function = true;
    if (!is_nested) break;
  }
  return is_function ? path : std::string();
}

std::string DemangledName(std::string_view name) {
  const std::string_view whole = WithoutDescriptor(name);
  if (!whole.starts_with(kMangled)) return std::string(whole);
  if (IsSmall(whole)) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> text(
        abi::__cxa_demangle(std::string(whole).c_str(), nullptr, nullptr, &status), &std::free);
    if (status == 0 && text != nullptr) return text.get();
  }
  const std::string path = MangledFunctionPath(whole);
  return path.empty() ? std::string(name) : path + "<…>";
}

std::string BareFunctionName(std::string_view name) {
  if (name.starts_with(kMangled)) {
    const std::string written = DemangledName(name);
    return written.starts_with(kMangled) ? written : BareFunctionName(written);
  }
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
