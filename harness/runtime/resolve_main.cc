// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// resolve [--create] [--mirrors DIR] [--torch V] [--relax NAME] [--extra REQUIREMENT]
//         POLICIES NAME [ENGINE] [LIBRARY]
// prints one line about the pairing's runtime. "-" stands for no engine or no library.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>

#include "harness/base/files.h"
#include "harness/runtime/environment_creator.h"
#include "harness/runtime/runtime_resolver.h"
#include "harness/source/subject_resolver.h"

namespace bkm {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "resolve: %s\n", std::string(status.message()).c_str());
  return 2;
}

struct Arguments {
  bool create = false;
  std::string mirrors;
  RuntimeRequest request;
  std::deque<std::string> positional;
};

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto next = [&] { return std::string(++i < argc ? argv[i] : ""); };
    if (argument == "--create") {
      arguments.create = true;
    } else if (argument == "--mirrors") {
      arguments.mirrors = next();
    } else if (argument == "--torch") {
      arguments.request.torch = next();
    } else if (argument == "--relax") {
      arguments.request.relax.push_back(next());
    } else if (argument == "--extra") {
      arguments.request.extra.push_back(next());
    } else {
      arguments.positional.push_back(argument);
    }
  }
  arguments.positional.resize(4, "-");
  return arguments;
}

int Main(int argc, char** argv) {
  Arguments arguments = Parse(argc, argv);
  const absl::StatusOr<Uv> uv = Uv::Find();
  if (!uv.ok()) return Fail(uv.status());
  const std::filesystem::path python = "/usr/bin/python3";
  SourceCatalog catalog;
  SubjectResolver subjects(
      catalog, *uv, {.cache = CacheDirectory(), .mirrors = arguments.mirrors, .python = python});
  absl::StatusOr<RuntimePolicy> policy =
      ReadRuntimePolicy({arguments.positional[0]}, arguments.positional[1]);
  if (!policy.ok()) return Fail(policy.status());
  arguments.request.policy = *policy;
  Clock::time_point start = Clock::now();
  std::deque<Subject> found;
  for (const Subject** role : {&arguments.request.engine, &arguments.request.library}) {
    const std::string text = arguments.positional[role == &arguments.request.engine ? 2 : 3];
    if (text == "-") continue;
    const absl::StatusOr<SubjectSpec> spec = ParseSubjectSpec(text);
    if (!spec.ok()) return Fail(spec.status());
    absl::StatusOr<Subject> subject = subjects.Resolve(*spec);
    if (!subject.ok()) return Fail(subject.status());
    if (subject->fault) return Fail(absl::FailedPreconditionError(subject->fault->message));
    *role = &found.emplace_back(*std::move(subject));
    std::printf("%s (%s) %s ", found.back().spec.ToString().c_str(), found.back().date.c_str(),
                found.back().tree.c_str());
  }
  std::printf("[sources %.1f s] ", SecondsSince(start));
  start = Clock::now();
  RuntimeResolver resolver(catalog, *uv, {.cache = CacheDirectory(), .python = python});
  const auto resolved = resolver.Resolve(arguments.request);
  if (!resolved.ok()) return Fail(resolved.status());
  if (const NoSolution* no = std::get_if<NoSolution>(&*resolved)) {
    std::printf("NO SOLUTION [%.1f s]: %s\n", SecondsSince(start), no->message.c_str());
    return 0;
  }
  const RuntimeLock& lock = std::get<RuntimeLock>(*resolved);
  std::printf("lock %s [%.1f s]: %zu packages as of %s", lock.Key().substr(0, 12).c_str(),
              SecondsSince(start), lock.packages.size(), lock.cutoff.c_str());
  for (const char* name : {"torch", "triton", "transformers", "numpy", "datasets", "tensordict"}) {
    std::printf(", %s %s", name, lock.VersionOf(name).c_str());
  }
  if (arguments.create) {
    start = Clock::now();
    const auto created = EnvironmentCreator(*uv, CacheDirectory(), python).Create(lock);
    if (!created.ok()) return Fail(created.status());
    std::printf(" [created %.1f s] %s", SecondsSince(start), created->c_str());
  }
  std::printf("\n");
  return 0;
}

}  // namespace
}  // namespace bkm

int main(int argc, char** argv) { return bkm::Main(argc, argv); }
