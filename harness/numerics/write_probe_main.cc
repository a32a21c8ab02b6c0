// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Writes the folder of one probe, to inspect it or to run the reference on it.
#include <CLI/CLI.hpp>
#include <iostream>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"
#include "harness/numerics/golden_key.h"
#include "harness/numerics/model_shapes.h"
#include "harness/numerics/model_weights.h"
#include "harness/numerics/probe_folder.h"

namespace {

struct Flags {
  std::string json;
  std::string cache = bkm::CacheDirectory().string();
  bool print_golden_key = false;
  bool print_weights = false;
};

absl::StatusOr<bkm::Probe> ReadProbe(const std::string& json_path) {
  if (json_path.empty()) return bkm::Probe();
  ASSIGN_OR_RETURN(const bkm::Json json, bkm::ReadJsonFile(json_path));
  return bkm::ProbeFromJson(json, json_path);
}

// How DrawWeight() draws each tensor of the model's file.
std::string DrawnWeights(const bkm::Probe& probe, const bkm::ModelShape& shape) {
  bkm::OrderedJson weights = bkm::OrderedJson::array();
  for (const bkm::WeightShape& weight : bkm::TensorsOf(shape)) {
    weights.push_back({{"name", weight.name},
                       {"shape", weight.shape},
                       {"mean", weight.mean},
                       {"standard_deviation", weight.standard_deviation}});
  }
  return bkm::OrderedJson{{"seed", probe.seed}, {"weights", weights}}.dump();
}

absl::StatusOr<std::string> Run(const Flags& flags) {
  ASSIGN_OR_RETURN(const bkm::Probe probe, ReadProbe(flags.json));
  if (flags.print_golden_key) return bkm::GoldenKey(probe);
  if (flags.print_weights) {
    ASSIGN_OR_RETURN(const bkm::ModelShape shape, bkm::ShapeOf(probe));
    return DrawnWeights(probe, shape);
  }
  ASSIGN_OR_RETURN(const std::filesystem::path folder, bkm::WriteProbeFolder(probe, flags.cache));
  return folder.string();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Writes the probe folder of harness/protocol/README.md and prints its path.");
  Flags flags;
  app.add_option("--json", flags.json, "a probe as JSON (default: the default probe)");
  app.add_option("--cache", flags.cache, "the folder to write below")->capture_default_str();
  app.add_flag("--print-golden-key", flags.print_golden_key,
               "print the golden's key, write nothing");
  app.add_flag("--print-weights", flags.print_weights,
               "print how each weight is drawn, as JSON; write nothing");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const absl::StatusOr<std::string> line = Run(flags);
  if (!line.ok()) {
    std::cerr << "write_probe: " << line.status().message() << "\n";
    return 2;
  }
  std::cout << *line << "\n";
  return 0;
}
