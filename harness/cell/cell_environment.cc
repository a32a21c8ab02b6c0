// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/cell/cell_environment.h"

#include <cstdint>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace bkm {

std::map<std::string, std::string> CellEnvironment(const std::filesystem::path& python) {
  std::map<std::string, std::string> environment = {
      {"PATH", absl::StrCat(python.parent_path().string(),
                            ":/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin")},
      {"LANG", "C.UTF-8"},
      {"HOME", kPreloadHome},
      {"TMPDIR", "/tmp"},
      {"PYTHONDONTWRITEBYTECODE", "1"},
      {"PYTHONHASHSEED", "0"},
      {"HF_HUB_OFFLINE", "1"},
      {"TRANSFORMERS_OFFLINE", "1"},
      {"HF_DATASETS_OFFLINE", "1"},
      {"HF_HUB_DISABLE_TELEMETRY", "1"},
      {"WANDB_MODE", "disabled"},
      {"TOKENIZERS_PARALLELISM", "false"},
      // A cell has no other interface.
      {"GLOO_SOCKET_IFNAME", "lo"},
      // Threads that a library starts at load time do not survive the fork.
      {"OPENBLAS_NUM_THREADS", "1"},
      // glibc keeps what tensors leave, for the next ones: each step of each rank would page it in
      // again. 32 MiB is the largest threshold that glibc takes.
      {"MALLOC_ARENA_MAX", "1"},
      {"MALLOC_MMAP_THRESHOLD_", absl::StrCat(32 << 20)},
      {"MALLOC_TOP_PAD_", absl::StrCat(64 << 20)},
      {"MALLOC_TRIM_THRESHOLD_", absl::StrCat(int64_t{4} << 30)},
  };
  // The runner chooses the worker's GPUs, so these variables are not the user's.
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"}) {
    if (const char* value = std::getenv(name)) environment[name] = value;
  }
  return environment;
}

std::map<std::string, std::string> CellFolders(const std::filesystem::path& work) {
  return {{"HOME", work / "home"}, {"TMPDIR", work / "tmp"}};
}

}  // namespace bkm
