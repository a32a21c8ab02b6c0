// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_NUMERICS_PROBE_FOLDER_H_
#define HARNESS_NUMERICS_PROBE_FOLDER_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "harness/model/probe.h"
#include "harness/numerics/packed_batch.h"

namespace bkm {

// A probe folder without the model's weights (harness/protocol/README.md).
struct ProbeFolder {
  std::filesystem::path path;
  Probe probe;  // the fields that NumericsOf keeps; the others have their defaults
  ReachTest reach;
  std::vector<TokenChange> reaches;
  std::vector<PackedBatch> steps;
  // Of a probe with a trainer: all documents that it keeps of its data file.
  std::optional<PackedBatch> kept;
  std::map<std::string, std::vector<int64_t>> places;             // by HF tensor name
  std::filesystem::path model() const { return path / "model"; }  // model_checkpoint.h
};

// Makes the folder of `probe` below `cache_root`, once. Its name is a hash of NumericsOf(probe) and
// the generator's version. A complete folder is reused, an incomplete one replaced. The folder
// appears whole, by a rename, so processes can share `cache_root`.
absl::StatusOr<std::filesystem::path> WriteProbeFolder(const Probe& probe,
                                                       const std::filesystem::path& cache_root);

// Reads and checks a folder, except the weights.
absl::StatusOr<ProbeFolder> ReadProbeFolder(const std::filesystem::path& path);

}  // namespace bkm

#endif  // HARNESS_NUMERICS_PROBE_FOLDER_H_
