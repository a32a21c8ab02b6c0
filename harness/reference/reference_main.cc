// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Computes the golden of a probe and the floors of right low-precision runs.
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <sysexits.h>
#include <torch/version.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"
#include "harness/model/layout.h"
#include "harness/reference/floor.h"
#include "harness/reference/golden.h"
#include "harness/reference/predicted.h"

namespace {

struct Flags {
  std::string probe;
  std::string out;
  std::string golden;
  std::string precision;
  std::string layout = "1";
  int threads = 1;
};

absl::Status RunGolden(const Flags& flags) {
  ASSIGN_OR_RETURN(const bkm::LoadedProbe probe, bkm::LoadProbe(flags.probe));
  const std::vector<bkm::StepFacts> steps =
      bkm::RunSteps(probe, probe.weights, bkm::ExactArithmetic());
  return bkm::WriteGolden(probe, steps, bkm::PredictedAnswers(probe, steps.front()), flags.out);
}

absl::Status RunFloor(const Flags& flags) {
  ASSIGN_OR_RETURN(const bkm::LoadedProbe probe, bkm::LoadProbe(flags.probe));
  ASSIGN_OR_RETURN(const std::vector<bkm::StepFacts> golden, bkm::ReadGolden(probe, flags.golden));
  ASSIGN_OR_RETURN(const bkm::Layout layout, bkm::ParseLayout(flags.layout));
  ASSIGN_OR_RETURN(const bkm::Json floor,
                   bkm::ComputeFloor(probe, golden, flags.precision, bkm::ReductionsOf(layout)));
  return bkm::WriteFile(flags.out, bkm::ToText(floor));
}

// Returns 0, or after one sentence on stderr 2, or EX_TEMPFAIL for a full disk.
int Report(const std::function<absl::Status()>& run) {
  std::string message;
  int code = 2;
  try {
    const absl::Status status = run();
    if (status.ok()) return 0;
    if (absl::IsResourceExhausted(status)) code = EX_TEMPFAIL;
    message = std::string(status.message());
  } catch (const c10::Error& error) {
    message = error.what_without_backtrace();
  } catch (const std::exception& error) {
    message = error.what();
  }
  std::cerr << "reference_worker: " << message.substr(0, message.find('\n')) << "\n";
  return code;
}

CLI::App* AddCommand(CLI::App& app, Flags& flags, const char* name, const char* what) {
  CLI::App* command = app.add_subcommand(name, what);
  command->add_option("--probe", flags.probe, "the probe folder")->required();
  command->add_option("--out", flags.out, "the file to write")->required();
  command->add_option("--threads", flags.threads, "threads for LibTorch")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  return command;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Goldens and floors, as in harness/protocol/README.md.", "reference_worker");
  app.require_subcommand(1);
  app.set_version_flag("--torch-version", TORCH_VERSION, "print LibTorch's version and exit");
  Flags flags;
  CLI::App* golden = AddCommand(app, flags, "golden", "the probe's fp64 answer (safetensors)");
  CLI::App* floor = AddCommand(app, flags, "floor", "the error of right low-precision runs (JSON)");
  floor->add_option("--golden", flags.golden, "the probe's golden")->required();
  floor->add_option("--precision", flags.precision, "bf16 or fp32")->required();
  floor->add_option("--layout", flags.layout, "how ranks share the work, such as dp_shard=2+tp=2")
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  at::set_num_threads(flags.threads);
  return Report([&] { return golden->parsed() ? RunGolden(flags) : RunFloor(flags); });
}
