// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
//
// Measures how long a commit's tree takes: `tree_views_bench MIRROR.git PACKAGE FOLDER [COMMITS]`.
// Makes the trees of the latest commits below the empty FOLDER twice: first with no file kept, then
// with all of them kept. Prints milliseconds per tree. For minutes after many files were deleted,
// ext4 is slow to find a free inode for a folder: use a FOLDER in memory to measure only our own
// work.
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "absl/strings/str_split.h"
#include "harness/base/check.h"
#include "harness/base/files.h"
#include "harness/source/tree_views.h"

namespace bkm {
namespace {

namespace fs = std::filesystem;

struct Times {
  std::vector<double> milliseconds;
  void Print(const char* what) {
    std::sort(milliseconds.begin(), milliseconds.end());
    double sum = 0;
    for (double time : milliseconds) sum += time;
    std::printf("%-28s median %8.2f ms, mean %8.2f ms, of %zu trees\n", what,
                milliseconds[milliseconds.size() / 2], sum / milliseconds.size(),
                milliseconds.size());
  }
};

template <typename Work>
double Milliseconds(Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

void Main(const fs::path& mirror, const std::string& package, const fs::path& folder,
          const std::string& count) {
  const GitRepository repository(mirror);
  const absl::StatusOr<std::string> log =
      repository.Output({"rev-list", "--first-parent", "-n", count, "HEAD"});
  HARNESS_CHECK(log.ok()) << log.status();
  const std::vector<std::string> commits = absl::StrSplit(*log, '\n', absl::SkipEmpty());
  const auto objects = GitObjects::Open(repository);
  HARNESS_CHECK(objects.ok()) << objects.status();
  TreeViews views(folder / "blobs", PackageReader("/usr/bin/python3"));
  const auto make = [&](const std::string& commit, const fs::path& tree) {
    HARNESS_CHECK(CreateDirectories(tree).ok()) << tree;
    const auto top = (*objects)->TreeOf(commit);
    HARNESS_CHECK(top.ok()) << top.status();
    const auto root = (*objects)->Find(*top, package);
    HARNESS_CHECK(root.ok() && *root) << commit;
    auto entries = (*objects)->Walk((*root)->id);
    HARNESS_CHECK(entries.ok()) << entries.status();
    for (GitEntry& entry : *entries) entry.path = package + "/" + entry.path;
    const auto made = views.Make(repository, **objects, commit, *entries, package, tree);
    HARNESS_CHECK(made.ok()) << made.status();
  };
  Times cold, known;
  for (const std::string& commit : commits)
    cold.milliseconds.push_back(Milliseconds([&] { make(commit, folder / "cold" / commit); }));
  for (const std::string& commit : commits)
    known.milliseconds.push_back(Milliseconds([&] { make(commit, folder / "known" / commit); }));
  cold.Print("nothing known, compiled");
  known.Print("files known, compiled");
}

}  // namespace
}  // namespace bkm

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "tree_views_bench MIRROR.git PACKAGE FOLDER [COMMITS]\n");
    return 2;
  }
  bkm::Main(argv[1], argv[2], argv[3], argc > 4 ? argv[4] : "50");
  return 0;
}
