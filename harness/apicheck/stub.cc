// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/stub.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

// $NAME is the missing name.
// The word "stand-in" is content of stored trees: changing it makes their results unusable.
constexpr char kMissingModule[] = R"(# A stand-in by bkm: the library has no such module.
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def refuse(self, *args, **kwargs):
        raise RuntimeError(f"the stand-in for $NAME.{name} was used")

    return type(name, (), {"__init__": refuse})
)";

constexpr char kMissingName[] = R"(

# A stand-in by bkm: the library has no such name here.
class $LAST:
    def __init__(self, *args, **kwargs):
        raise RuntimeError("the stand-in for $NAME was used")
)";

constexpr char kUnknownKeyword[] = R"(

# A stand-in by bkm: ignores keywords that are no longer taken.
def _bkm_ignores_unknown_keywords(target):
    import functools
    import inspect

    called = target.__init__ if isinstance(target, type) else target
    known = inspect.signature(called).parameters
    if any(one.kind is one.VAR_KEYWORD for one in known.values()):
        return target

    @functools.wraps(called)
    def forgiving(*args, **kwargs):
        return called(*args, **{key: value for key, value in kwargs.items() if key in known})

    if not isinstance(target, type):
        return forgiving
    target.__init__ = forgiving
    return target


$NAME = _bkm_ignores_unknown_keywords($NAME)
)";

std::string PathOf(const std::vector<std::string>& parts, size_t count, const char* end) {
  return absl::StrCat(absl::StrJoin(parts.begin() + 1, parts.begin() + count, "/"), end);
}

}  // namespace

absl::StatusOr<std::optional<NamedSource>> FindNamedSource(const std::string& dotted,
                                                           const ReadSource& read) {
  const std::vector<std::string> parts = absl::StrSplit(dotted, '.');
  for (size_t count = parts.size(); count > 0; --count) {
    std::vector<std::string> paths = {count == 1 ? "__init__.py"
                                                 : PathOf(parts, count, "/__init__.py")};
    if (count > 1) paths.insert(paths.begin(), PathOf(parts, count, ".py"));
    for (const std::string& path : paths) {
      ASSIGN_OR_RETURN(const auto text, read(path));
      if (!text) continue;
      return NamedSource{path, absl::StrJoin(parts.begin() + count, parts.end(), ".")};
    }
  }
  return std::optional<NamedSource>();
}

absl::StatusOr<std::optional<Stub>> MakeStub(const Violation& broken, const ReadSource& read) {
  const std::string name = broken.asked.substr(0, broken.asked.find('('));
  if (absl::StrContains(name, "*")) return std::optional<Stub>();
  if (broken.reason == "missing-module") {
    const std::vector<std::string> parts = absl::StrSplit(name, '.');
    if (parts.size() < 2) return std::optional<Stub>();
    return Stub{PathOf(parts, parts.size(), ".py"),
                absl::StrReplaceAll(kMissingModule, {{"$NAME", name}})};
  }
  ASSIGN_OR_RETURN(const auto source, FindNamedSource(name, read));
  if (!source || source->rest.empty()) return std::optional<Stub>();
  ASSIGN_OR_RETURN(const auto text, read(source->path));
  if (broken.reason == "missing-name" && !absl::StrContains(source->rest, ".")) {
    return Stub{source->path,
                absl::StrCat(*text, absl::StrReplaceAll(
                                        kMissingName, {{"$NAME", name}, {"$LAST", source->rest}}))};
  }
  if (broken.reason == "unknown-keyword") {
    return Stub{source->path, absl::StrCat(*text, absl::StrReplaceAll(kUnknownKeyword,
                                                                      {{"$NAME", source->rest}}))};
  }
  return std::optional<Stub>();
}

}  // namespace bkm
