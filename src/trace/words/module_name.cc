#include "src/trace/words/module_name.h"

#include <algorithm>

namespace etude {
namespace {

constexpr std::string_view kLabelPrefix = "nn.Module: ";
constexpr std::string_view kPathKey = "Module Hierarchy";

// "fc(Linear)::forward" → fc, Linear.
ModuleStep MakeStep(std::string_view text) {
  text = text.substr(0, text.find("::"));
  const size_t open = text.find('(');
  if (open == std::string_view::npos) return {.name = text, .type = {}};
  std::string_view type = text.substr(open + 1);
  return {.name = text.substr(0, open), .type = type.substr(0, type.rfind(')'))};
}

}  // namespace

bool IsModuleLabel(std::string_view name) { return name.starts_with(kLabelPrefix); }

ModuleStep ModuleOfLabel(std::string_view name) {
  if (!IsModuleLabel(name)) return {};
  name.remove_prefix(kLabelPrefix.size());
  const size_t open = name.rfind(" (");
  if (open == std::string_view::npos || !name.ends_with(')')) return {.name = name, .type = {}};
  return {.name = name.substr(0, open), .type = name.substr(open + 2, name.size() - open - 3)};
}

std::vector<ModuleStep> ModulePath(const Trace& trace, NodeId node) {
  std::vector<ModuleStep> path;
  for (const Extra& extra : trace.extras(node)) {
    if (extra.form != Extra::Form::kJson || trace.text(extra.key) != kPathKey) continue;
    std::string_view text = trace.text(extra.text);
    if (text.size() < 2 || !text.starts_with('"')) continue;
    text = text.substr(1, text.size() - 2);
    while (!text.empty()) {
      const size_t end = std::min(text.find('.'), text.size());
      if (end != 0) path.push_back(MakeStep(text.substr(0, end)));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }
  return path;
}

}  // namespace etude
