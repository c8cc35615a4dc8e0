#include "src/suite/nn/weights.h"

#include <numeric>
#include <utility>

namespace etude::suite {

std::vector<std::pair<std::string, at::Tensor>> Weights::Below(std::string_view part) const {
  const std::string begin = std::string(part) + '.';
  std::vector<std::pair<std::string, at::Tensor>> found;
  for (const Entry& entry : entries_) {
    if (entry.name.starts_with(begin)) {
      found.emplace_back(entry.name.substr(begin.size()), entry.value);
    }
  }
  return found;
}

int64_t Weights::ParameterCount() const {
  return std::accumulate(entries_.begin(), entries_.end(), int64_t{0},
                         [](int64_t sum, const Entry& entry) {
                           return entry.is_parameter ? sum + entry.value.numel() : sum;
                         });
}

Scope Scope::operator[](std::string_view name) const {
  Scope part = *this;
  if (!part.name_.empty()) part.name_ += '.';
  part.name_ += name;
  return part;
}

at::Tensor Scope::Parameter(std::string_view name, const at::Tensor& value,
                            std::shared_ptr<CsrWeight> csr) const {
  // Drawn on the CPU, so that a seed gives the same weights on each device.
  at::Tensor own = value.to(device()).detach().set_requires_grad(true);
  weights_->entries_.push_back({(*this)[name].name_, own, true, group_, std::move(csr)});
  return own;
}

at::Tensor Scope::Buffer(std::string_view name, const at::Tensor& value) const {
  at::Tensor own = value.to(device());
  weights_->entries_.push_back({(*this)[name].name_, own, false, group_, nullptr});
  return own;
}

}  // namespace etude::suite
