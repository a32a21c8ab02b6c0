// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/judge/load_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "harness/base/status_macros.h"
#include "harness/judge/case_file.h"
#include "harness/judge/claims.h"

namespace bkm {
namespace {

struct Tolerance {
  double norm;  // relative
  double sum;   // in norms
};
constexpr Tolerance kFp32 = {1e-6, 1e-6};
constexpr Tolerance kBf16 = {1.0 / 256, 1.0 / 64};

const Tolerance& ToleranceOf(absl::string_view precision_ran) {
  return precision_ran == "fp32" ? kFp32 : kBf16;
}

// The error of a tensor in tolerances; infinite for NaN.
double Misfit(const ObservedTensor& loaded, const ObservedTensor& file, Tolerance tolerance) {
  if (loaded.numel != file.numel || !std::isfinite(loaded.norm) || !std::isfinite(loaded.sum))
    return std::numeric_limits<double>::infinity();
  const double scale = std::max(file.norm, 1e-30);
  return std::max(std::abs(loaded.norm - file.norm) / (tolerance.norm * scale),
                  std::abs(loaded.sum - file.sum) / (tolerance.sum * scale));
}

Json Describe(const ObservedTensor& tensor) {
  return {{"norm", tensor.norm}, {"sum", tensor.sum}, {"numel", tensor.numel}};
}

// Subtracts tensors from a total.
class Remainder {
 public:
  explicit Remainder(const ObservedTensor& total)
      : squares_(total.norm * total.norm), sum_(total.sum), numel_(total.numel) {}
  void Without(const ObservedTensor& part) {
    squares_ -= part.norm * part.norm;
    sum_ -= part.sum;
    numel_ -= part.numel;
  }
  ObservedTensor Get() const { return {std::sqrt(std::max(squares_, 0.0)), sum_, numel_}; }

 private:
  double squares_, sum_;
  int64_t numel_;
};

ObservedTensor Together(const std::vector<std::string>& names,
                        const std::map<std::string, ObservedTensor>& tensors) {
  ObservedTensor all;
  for (const std::string& name : names) {
    const ObservedTensor& one = tensors.at(name);
    all = {std::hypot(all.norm, one.norm), all.sum + one.sum, all.numel + one.numel};
  }
  return all;
}

// Parameters that the file lacks keep the values that they were initialized with. Only sizes tell
// them from buffers, which a file may lack.
std::optional<CheckResult> Extra(const std::map<std::string, ObservedTensor>& loaded,
                                 const std::optional<ObservedTensor>& held,
                                 const std::map<std::string, ObservedTensor>& file) {
  const int64_t beyond = ElementsBeyond(held, file);
  if (beyond <= 0) return std::nullopt;
  std::string message =
      absl::StrCat("the model holds parameters with ", beyond, " elements that the file lacks");
  const auto named = std::find_if(loaded.begin(), loaded.end(),
                                  [&](const auto& one) { return !file.contains(one.first); });
  const auto embedding = file.find("model.embed_tokens.weight");
  if (named != loaded.end()) {
    absl::StrAppend(&message, ", such as ", named->first);
  } else if (embedding != file.end() && embedding->second.numel == beyond &&
             !file.contains("lm_head.weight")) {
    absl::StrAppend(&message,
                    ", as many as its embedding has: the head is not tied to the embedding, as the "
                    "model's configuration says");
  }
  return CheckResult::Failed(Stage::kGolden, reason::kWeightsNotLoaded, std::move(message));
}

// A second name of a tied tensor, which stands for no parameter of its own.
bool IsSecondName(const std::string& name, const std::map<std::string, ObservedTensor>& loaded,
                  const std::map<std::string, ObservedTensor>& file) {
  if (file.contains(name)) return false;
  const ObservedTensor& tensor = loaded.at(name);
  return std::any_of(loaded.begin(), loaded.end(), [&](const auto& other) {
    return file.contains(other.first) && other.second.numel == tensor.numel &&
           other.second.norm == tensor.norm && other.second.sum == tensor.sum;
  });
}

// Whether a tensor that the file lacks may be one of the unseen ones under another name. One of
// another size is a buffer, which the model does not hold as a parameter.
bool HasOtherNames(const std::vector<std::string>& unseen,
                   const std::map<std::string, ObservedTensor>& loaded,
                   const std::map<std::string, ObservedTensor>& file) {
  return std::any_of(loaded.begin(), loaded.end(), [&](const auto& one) {
    return !file.contains(one.first) && !IsSecondName(one.first, loaded, file) &&
           std::any_of(unseen.begin(), unseen.end(), [&](const std::string& name) {
             return file.at(name).numel == one.second.numel;
           });
  });
}

// The tensors of a file against what was loaded under their names. `kind`: "parameters".
struct FileComparison {
  const char* kind;
  size_t tensors;  // of the file
  std::vector<std::string> unseen = {};
  int64_t off = 0;
  std::vector<FailedPlace> places = {};
  std::string worst = "";  // of those seen
  double worst_misfit = -1;
  Json evidence = Json::object();

  // Wrong if one is another than in the file.
  std::optional<CheckResult> Off() const {
    if (off == 0) return std::nullopt;
    return CheckResult::Failed(Stage::kGolden, reason::kWeightsNotLoaded,
                               absl::StrCat(off, " of ", tensors, " ", kind,
                                            " are not those of the file; the worst is ", worst),
                               evidence)
        .At(places);
  }
  // Undecided if one was not seen.
  std::optional<CheckResult> Unseen() const {
    if (unseen.empty()) return std::nullopt;
    return CheckResult::Unseen(Stage::kGolden,
                               absl::StrCat(unseen.size(), " of ", tensors, " ", kind,
                                            " were not seen after loading, first ", unseen.front()),
                               evidence);
  }
};
FileComparison Compare(const char* kind, const std::map<std::string, ObservedTensor>& loaded,
                       const std::map<std::string, ObservedTensor>& file,
                       absl::string_view precision_ran) {
  const Tolerance& tolerance = ToleranceOf(precision_ran);
  FileComparison result = {kind, file.size()};
  for (const auto& [name, expected] : file) {
    const auto seen = loaded.find(name);
    if (seen == loaded.end()) {
      result.unseen.push_back(name);
      continue;
    }
    const double misfit = Misfit(seen->second, expected, tolerance);
    if (misfit > 1) {
      ++result.off;
      result.places.push_back(
          {name,
           absl::StrFormat("norm %.6g and sum %.6g, in the file %.6g and %.6g", seen->second.norm,
                           seen->second.sum, expected.norm, expected.sum),
           std::isfinite(misfit) ? std::optional<double>(misfit) : std::nullopt});
    }
    if (misfit > result.worst_misfit) {
      result.worst_misfit = misfit;
      result.worst = name;
    }
  }
  result.evidence = {{"tensors", file.size()}, {"off", result.off}};
  if (const std::string& worst = result.worst; !worst.empty()) {
    Json& described = result.evidence["worst"];
    described = {{"name", worst},
                 {"loaded", Describe(loaded.at(worst))},
                 {"file", Describe(file.at(worst))}};
    if (std::isfinite(result.worst_misfit)) described["tolerances"] = result.worst_misfit;
  }
  return result;
}

std::vector<FailedPlace> PlacesOf(const std::vector<std::string>& names) {
  std::vector<FailedPlace> places;
  for (const std::string& name : names) places.push_back({name, "the model holds nothing for it"});
  return places;
}

std::vector<std::string> AddedNames(const std::map<std::string, ObservedTensor>& loaded,
                                    const std::map<std::string, ObservedTensor>& file) {
  std::vector<std::string> added;
  for (const auto& [name, tensor] : loaded) {
    if (!file.contains(name)) added.push_back(name);
  }
  return added;
}

}  // namespace

int64_t ElementsBeyond(const std::optional<ObservedTensor>& held,
                       const std::map<std::string, ObservedTensor>& file) {
  int64_t beyond = held ? held->numel : 0;
  for (const auto& [name, tensor] : file) beyond -= tensor.numel;
  return std::max<int64_t>(beyond, 0);
}

ObservedTensor Measure(const std::vector<float>& values) {
  double squares = 0, sum = 0;
  for (const double value : values) {
    squares += value * value;
    sum += value;
  }
  return {std::sqrt(squares), sum, static_cast<int64_t>(values.size())};
}

CheckResult CheckLoad(const std::map<std::string, ObservedTensor>& loaded,
                      const std::optional<ObservedTensor>& held,
                      const std::map<std::string, ObservedTensor>& file,
                      absl::string_view precision_ran) {
  if (loaded.empty())
    return CheckResult::Unseen(Stage::kGolden, "the parameters after loading were not seen");
  FileComparison compared = Compare("parameters", loaded, file, precision_ran);
  const std::vector<std::string>& unseen = compared.unseen;
  Json& evidence = compared.evidence;
  if (auto wrong = compared.Off()) return *std::move(wrong);
  if (std::optional<CheckResult> extra = Extra(loaded, held, file)) {
    extra->facts.update(evidence);
    return *std::move(extra);
  }
  if (!unseen.empty() && held) {
    const bool may_be_renamed = HasOtherNames(unseen, loaded, file);
    Remainder rest(*held);
    for (const auto& [name, tensor] : loaded) {
      if (file.contains(name) || (may_be_renamed && !IsSecondName(name, loaded, file)))
        rest.Without(tensor);
    }
    const ObservedTensor beyond = rest.Get();
    const ObservedTensor expected = Together(unseen, file);
    evidence["not_seen"] = {
        {"tensors", unseen.size()}, {"held", Describe(beyond)}, {"file", Describe(expected)}};
    if (beyond.numel == 0 && !may_be_renamed) {
      return CheckResult::Failed(
                 Stage::kGolden, reason::kWeightsNotLoaded,
                 absl::StrCat("the model holds nothing for ", unseen.size(), " of ", file.size(),
                              " parameters of the file, first ", unseen.front()),
                 std::move(evidence))
          .At(PlacesOf(unseen));
    }
    // The model holds them, under no name at all.
    const bool has_no_name = beyond.numel == expected.numel;
    if (has_no_name && Misfit(beyond, expected, ToleranceOf(precision_ran)) > 1) {
      return CheckResult::Failed(
          Stage::kGolden, reason::kWeightsNotLoaded,
          absl::StrCat(unseen.size(), " of ", file.size(), " parameters of the file, first ",
                       unseen.front(),
                       ", have no counterpart by name, and what the model holds for them is not "
                       "what the file has"),
          std::move(evidence));
    }
    if (has_no_name) {
      return CheckResult::Failed(
          Stage::kGolden, reason::kExportNames,
          absl::StrCat("the library's own mapping to Hugging Face's names leaves out parameters "
                       "that the model holds: ",
                       unseen.size(), " of ", file.size(), " of the file, first ", unseen.front()),
          std::move(evidence));
    }
  }
  if (auto undecided = compared.Unseen()) return *std::move(undecided);
  if (const std::vector<std::string> added = AddedNames(loaded, file); !added.empty()) {
    evidence["added"] = added.size();
    return CheckResult::Failed(
        Stage::kGolden, reason::kExportNames,
        absl::StrCat("the library's own mapping to Hugging Face's names gives ", added.size(),
                     added.size() == 1 ? " name" : " names", " that the file lacks, ",
                     added.size() == 1 ? "" : "first ", added.front()),
        std::move(evidence));
  }
  return CheckResult::Passed(Stage::kGolden, std::move(evidence));
}

CheckResult CheckBuffers(const std::map<std::string, ObservedTensor>& loaded,
                         const std::map<std::string, ObservedTensor>& file,
                         absl::string_view precision_ran) {
  const FileComparison compared = Compare("buffers", loaded, file, precision_ran);
  if (auto wrong = compared.Off()) return *std::move(wrong);
  if (auto undecided = compared.Unseen()) return *std::move(undecided);
  return CheckResult::Passed(Stage::kGolden, compared.evidence);
}

namespace {

CheckResult CheckLoadOf(const CaseFile& file) {
  if (!file.reference().weights.ok())
    return CheckResult::Unreadable(Stage::kGolden, file.reference().weights.status());
  return CheckLoad(file.seen().load, file.seen().held, *file.reference().weights,
                   PrecisionOf(file.seen(), file.probe()));
}

CheckResult CheckBuffersOf(const CaseFile& file) {
  if (!file.reference().buffers.ok())
    return CheckResult::Unreadable(Stage::kGolden, file.reference().buffers.status());
  return CheckBuffers(file.seen().load_buffers, *file.reference().buffers,
                      PrecisionOf(file.seen(), file.probe()));
}

bool ShowsWeights(const CaseFile& file) {
  return file.has_finished || (!file.seen().load.empty() && file.input.reference != nullptr);
}

bool FileHasBuffers(const CaseFile& file) {
  if (!file.has_finished) return false;
  const auto& buffers = file.reference().buffers;
  return !buffers.ok() || !buffers->empty();
}

}  // namespace

extern const Claim kLoadClaim = {
    .name = "load",
    .rung = Stage::kLoad,
    .says = "the checkpoint was loaded",
    .witness =
        "norm and sum of each tensor that the file has, whether the model holds more than "
        "the file, and whether the library's mapping to the file's names loses a tensor or "
        "adds a name, after loading",
    .cannot_see = "two errors in one tensor that cancel in both",
    .applies = ShowsWeights,
    .check = CheckLoadOf,
};

extern const Claim kBuffersClaim = {
    .name = "buffers",
    .rung = Stage::kLoad,
    .says = "so were the buffers that the file has",
    .witness = "norm and sum of each, after loading",
    .cannot_see = "two errors in one buffer that cancel in both",
    .applies = FileHasBuffers,
    .check = CheckBuffersOf,
};

}  // namespace bkm
