#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/base/result.h"
#include "src/base/run_context.h"

// Reads JSON documents with "format" and "version", written by Etude but possibly modified since,
// and small foreign ones.
namespace etude {

// Kind of a document: its readable name, format and version.
struct DocumentKind {
  std::string_view name;    // "a job.json"
  std::string_view format;  // "etude-job"
  int64_t version = 1;      // latest supported version; later ones may add members
};

// Reads a document and checks its format and version. kIo if it cannot be opened; kBadInput if it
// is invalid, larger than 256 MiB, nested too deeply or has a duplicate key in an object.
Result<nlohmann::json> ReadDocument(const std::string& path, const DocumentKind& kind,
                                    const RunContext& context);
// Parses the text of a document; `path` is used in messages.
Result<nlohmann::json> ParseDocument(const std::string& path, std::string_view text,
                                     const DocumentKind& kind, const RunContext& context);

// Reads a foreign document, without "format" and "version"; `name` is a readable name.
Result<nlohmann::json> ReadForeignDocument(const std::string& path, std::string_view name,
                                           const RunContext& context);

// Members of one object of a document. Sets the status to an error with the place at the first
// member of an unexpected type; missing and null members are unknown. The document and the status
// must outlive it.
class JsonMembers {
 public:
  JsonMembers(std::string where, const nlohmann::json& json, Status& status);

  bool empty() const { return !json_->is_object() || json_->empty(); }
  bool Has(const char* key) const { return json_->is_object() && json_->contains(key); }
  const nlohmann::json& json() const { return *json_; }
  std::optional<std::string> Text(const char* key) const;
  std::optional<bool> Truth(const char* key) const;
  std::optional<int64_t> Whole(const char* key, int64_t least, int64_t most = INT64_MAX) const;
  // Returns a finite number.
  std::optional<double> Number(const char* key) const;
  JsonMembers Object(const char* key) const;
  const nlohmann::json& List(const char* key) const;
  std::vector<std::string> Texts(const char* key) const;
  // Returns the objects of a list.
  std::vector<JsonMembers> Objects(const char* key) const;
  std::string Place(std::string_view key) const;
  // Reports an error for the member at `key`, unless there was one before.
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
