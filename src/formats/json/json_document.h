#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/base/result.h"
#include "src/base/run_context.h"

// JSON documents with "format" and "version" that Etude wrote itself, whatever has become of them
// since, and small ones of others.
namespace etude {

// What a document is: its name for people, and what stands in it.
struct DocumentKind {
  std::string_view name;    // "a job.json"
  std::string_view format;  // "etude-job"
  int64_t version = 1;      // the latest that is read; later ones may add members
};

// Reads a document and checks its format and version. kIo if it cannot be opened, kBadInput if it
// is none, is larger than 256 MiB, is nested too deeply or has a key twice in an object.
Result<nlohmann::json> ReadDocument(const std::string& path, const DocumentKind& kind,
                                    const RunContext& context);
// The same from its text; `path` appears in messages.
Result<nlohmann::json> ParseDocument(const std::string& path, std::string_view text,
                                     const DocumentKind& kind, const RunContext& context);

// The same of a document that is not ours, without "format" and "version"; `name` is for people.
Result<nlohmann::json> ReadForeignDocument(const std::string& path, std::string_view name,
                                           const RunContext& context);

// The members of one object of a document. The first one of another type than expected is the
// error, with its place; what is absent or null is unknown. The document and the status outlive it.
class JsonMembers {
 public:
  JsonMembers(std::string where, const nlohmann::json& json, Status& status);

  bool empty() const { return !json_->is_object() || json_->empty(); }
  bool Has(const char* key) const { return json_->is_object() && json_->contains(key); }
  const nlohmann::json& json() const { return *json_; }
  std::optional<std::string> Text(const char* key) const;
  std::optional<bool> Truth(const char* key) const;
  std::optional<int64_t> Whole(const char* key, int64_t least, int64_t most = INT64_MAX) const;
  // A finite number.
  std::optional<double> Number(const char* key) const;
  JsonMembers Object(const char* key) const;
  const nlohmann::json& List(const char* key) const;
  std::vector<std::string> Texts(const char* key) const;
  // The objects of a list.
  std::vector<JsonMembers> Objects(const char* key) const;
  std::string Place(std::string_view key) const;
  // Makes the member at `key` the error, if there was none before.
  void Refuse(const char* key, std::string_view expected) const;

 private:
  const nlohmann::json* Find(const char* key, bool (nlohmann::json::*is)() const,
                             std::string_view expected) const;
  void RefuseAt(std::string_view where, std::string_view expected,
                const nlohmann::json& found) const;

  std::string where_;
  const nlohmann::json* json_;
  Status* status_;
};

}  // namespace etude
