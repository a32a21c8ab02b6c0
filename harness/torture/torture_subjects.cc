// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/torture/torture_subjects.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/status_macros.h"
#include "harness/base/subprocess.h"
#include "harness/source/git_repository.h"

namespace bkm {
namespace fs = std::filesystem;

namespace {

constexpr char kLibrary[] = R"(class Model:
    def __init__(self):
        self.weight = 0.0

    def load(self):
        self.weight = 1.0
)";

constexpr char kEngine[] = R"(import time


class Engine:
    def __init__(self, library, attention):
        self.attention = attention
        self.model = library.Model()
        time.sleep(0.03)

    def load(self):
        self.model.load()

    def forward(self):
        return self.model.weight * 2.0

    def backward(self):
        pass

    def step(self):
        pass
)";

constexpr char kRuntime[] = R"({
  "schema": 1,
  "name": "bare",
  "policy": "existing",
  "python": "3.11",
  "interpreter": "/usr/bin/python3"
}
)";

struct Pair {
  const char* name;
  const char* on_import;  // what the engine does besides
};
constexpr Pair kPairs[] = {
    {"passes", ""},
    {"raises", "import fake_library.moved_away\n"},
    {"refuses",
     "def refuse(*_):\n    raise NotImplementedError('flex is not supported')\n"
     "Engine.__init__ = refuse\n"},
    {"exits", "import os\nos._exit(3)\n"},
    {"takes_long", "time.sleep(0.3)\n"},
    {"starts_a_program", "import subprocess\nsubprocess.run(['/bin/sleep', '0.1'], check=False)\n"},
};

absl::Status Git(const fs::path& folder, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(),
                   {"-C", folder.string(), "-c", "user.name=T", "-c", "user.email=t@example.org",
                    "-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main"});
  Command command = GitCommand(arguments);
  command.set_env["GIT_COMMITTER_DATE"] = command.set_env["GIT_AUTHOR_DATE"] =
      "2026-03-01T12:00:00Z";
  return RunForOutput(command).status();
}

// A repository with a commit for each content of NAME/__init__.py, on the branches c0, c1, ...
absl::Status WriteRepository(const fs::path& folder, const std::string& name,
                             const std::vector<std::string>& contents) {
  const fs::path work = folder / "work" / name;
  RETURN_IF_ERROR(CreateDirectories(work));
  RETURN_IF_ERROR(Git(work, {"init", "--quiet"}));
  for (size_t i = 0; i < contents.size(); ++i) {
    RETURN_IF_ERROR(WriteScratchFile(work / name / "__init__.py", contents[i]));
    RETURN_IF_ERROR(WriteScratchFile(work / name / absl::StrCat("part_", i, ".py"), "A = 1\n"));
    RETURN_IF_ERROR(Git(work, {"add", "--all"}));
    RETURN_IF_ERROR(Git(work, {"commit", "--quiet", "--message", absl::StrCat("Commit ", i)}));
    RETURN_IF_ERROR(Git(work, {"branch", absl::StrCat("c", i)}));
  }
  RETURN_IF_ERROR(CreateDirectories(folder / "mirrors"));
  std::error_code error;
  fs::create_directory_symlink(work / ".git", folder / "mirrors" / (name + ".git"), error);
  return absl::OkStatus();
}

Json GroupOf(const std::string& engine, const std::vector<std::string>& libraries) {
  return {{"engine", {{"kind", "fixture"}, {"subjects", {engine}}}},
          {"library", libraries},
          {"runtime", {"bare"}},
          {"probe", {{"attention", {"flex"}}, {"steps", 1}}}};
}

}  // namespace

absl::StatusOr<fs::path> WriteTortureSubjects(const fs::path& folder) {
  Json groups = Json::array();
  for (const Pair& pair : kPairs) {
    const fs::path at = folder / "packages" / pair.name;
    RETURN_IF_ERROR(WriteScratchFile(at / "engine/fake_engine/__init__.py",
                                     absl::StrCat(kEngine, "\n\n", pair.on_import)));
    RETURN_IF_ERROR(WriteScratchFile(at / "library/fake_library/__init__.py", kLibrary));
    groups.push_back(GroupOf(absl::StrCat("path:packages/", pair.name, "/engine"),
                             {absl::StrCat("path:packages/", pair.name, "/library")}));
  }
  const std::string broken = absl::StrCat(kLibrary, "\nimport fake_library.moved_away\n");
  RETURN_IF_ERROR(WriteRepository(folder, "fake_engine", {kEngine}));
  RETURN_IF_ERROR(WriteRepository(
      folder, "fake_library",
      {kLibrary, absl::StrCat(kLibrary, "\n# 2\n"), broken, absl::StrCat(kLibrary, "\n# 4\n")}));
  groups.push_back(GroupOf("git:fake_engine@c0", {"git:fake_library@c0", "git:fake_library@c1",
                                                  "git:fake_library@c2", "git:fake_library@c3"}));
  const Json sources = {{"fake_engine", {{"package", "fake_engine"}}},
                        {"fake_library", {{"package", "fake_library"}}}};
  // A runtime without packages: no registry is needed.
  RETURN_IF_ERROR(WriteScratchFile(folder / "runtimes/bare.json", kRuntime));
  const fs::path matrix = folder / "torture.json";
  RETURN_IF_ERROR(WriteScratchFile(matrix, ToText(Json{{"schema", 1},
                                                       {"name", "torture"},
                                                       {"limits", {{"timeout_s", 60}}},
                                                       {"sources", sources},
                                                       {"groups", groups}})));
  return matrix;
}

}  // namespace bkm
