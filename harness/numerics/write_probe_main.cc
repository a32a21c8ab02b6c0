// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Writes the probe folder of a probe by hand, to look at it or to run something on it.
#include <CLI/CLI.hpp>
#include <iostream>

#include "harness/base/files.h"
#include "harness/numerics/probe_folder.h"

namespace {

absl::StatusOr<std::filesystem::path> Write(const std::string& json_path,
                                            const std::filesystem::path& cache) {
  bkm::Probe probe;
  if (!json_path.empty()) {
    const absl::StatusOr<bkm::Json> json = bkm::ReadJsonFile(json_path);
    if (!json.ok()) return json.status();
    const absl::StatusOr<bkm::Probe> read = bkm::ProbeFromJson(*json, json_path);
    if (!read.ok()) return read.status();
    probe = *read;
  }
  return bkm::WriteProbeFolder(probe, cache);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Writes the probe folder of harness/protocol/README.md and prints its path.");
  std::string json;
  std::string cache = bkm::CacheDirectory().string();
  app.add_option("--json", json, "a probe as JSON (default: the default probe)");
  app.add_option("--cache", cache, "the folder to write below")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const absl::StatusOr<std::filesystem::path> folder = Write(json, cache);
  if (!folder.ok()) {
    std::cerr << "write_probe: " << folder.status().message() << "\n";
    return 2;
  }
  std::cout << folder->string() << "\n";
  return 0;
}
