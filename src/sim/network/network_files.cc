#include "src/sim/network/network_files.h"

#include <algorithm>
#include <string_view>

#include "src/sim/machine/astra_config.h"
#include "src/sim/network/infra_graph.h"
#include "src/sim/network/link_list.h"
#include "src/sim/network/network_topologies.h"

namespace etude {
namespace {

// Returns the text from its first line that is neither empty nor a comment.
std::string_view FromFirstLine(std::string_view text) {
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    if (!text.starts_with('#') && !text.starts_with("---")) return text;
    text.remove_prefix(std::min(text.find('\n'), text.size()));
  }
}

// Returns whether the text is a YAML or JSON mapping.
bool IsMapping(std::string_view text) {
  text = FromFirstLine(text);
  const std::string_view word = text.substr(0, text.find_first_of(" \t\r\n"));
  return word.starts_with('{') || word.ends_with(':');
}

// Returns whether a line or an object of the text has the key, as the file's form is decided by it.
bool HasKey(std::string_view text, std::string_view key) {
  for (size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
    std::string_view after = text.substr(at + key.size());
    after.remove_prefix(std::min(after.find_first_not_of("\"'"), after.size()));
    const bool begins = at == 0 || std::string_view("\n\"'{ ").find(text[at - 1]) != text.npos;
    if (begins && after.starts_with(':')) return true;
  }
  return false;
}

}  // namespace

Result<NetworkGraph> ParseNetworkGraph(const std::string& text, const std::string& path) {
  if (!IsMapping(text)) return ParseLinkList(text, path);
  return IsListOfDims(text) ? MakeNetwork(text, path) : ParseInfraGraph(text, path);
}

bool IsListOfDims(const std::string& text) { return IsMapping(text) && HasKey(text, "topology"); }

bool NeedsGraph(const std::string& text) {
  if (!IsListOfDims(text)) return true;
  SimMachine scratch;
  return !ParseAstraNetwork(text, "", scratch) && MakeNetwork(text, "");
}

}  // namespace etude
