// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/closure.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

// The observer whose record is exact, and the version of what it records and of StateOf.
constexpr absl::string_view kObserver = "fuse";
constexpr int kVersion = 1;
constexpr absl::string_view kTitle = "observed by fuse 1\n";

// The lists of a tree's closure, each with its key in JSON and its letter in a dependence.
template <typename Tree>
std::vector<std::tuple<const char*, char, decltype(&std::declval<Tree&>().read)>> ListsOf(
    Tree& tree) {
  return {{"read", 'r', &tree.read}, {"lookups", 'l', &tree.lookups}, {"asked", 'a', &tree.asked}};
}

absl::StatusOr<TreeClosure> TreeFromJson(const Json& json, const std::string& origin) {
  TreeClosure tree;
  for (const auto& [key, letter, list] : ListsOf(tree)) {
    const auto items = json.find(key);
    if (items == json.end() || !items->is_array())
      return absl::InvalidArgumentError(absl::StrCat(origin, ": ", key, ": a list is needed"));
    for (const Json& item : *items) {
      // Names are escaped as in C: they may hold any bytes.
      std::string name;
      if (!item.is_string() || !absl::CUnescape(item.get_ref<const std::string&>(), &name))
        return absl::InvalidArgumentError(
            absl::StrCat(origin, ": ", key, ": a list of escaped names is needed"));
      list->push_back(std::move(name));
    }
  }
  return tree;
}

absl::string_view NameOf(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == path.npos ? path : path.substr(slash + 1);
}
std::string FolderOf(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return std::string(path.substr(0, slash == path.npos ? 0 : slash));
}
std::string Below(absl::string_view folder) {
  return folder.empty() ? "" : absl::StrCat(folder, "/");
}

void AddFiles(const TreeListing& listing, const std::string& prefix, absl::string_view ending,
              std::string& state) {
  for (const auto& [path, id] : listing.StartingWith(prefix)) {
    if (absl::EndsWith(path, ending)) absl::StrAppend(&state, path, "=", id, " ");
  }
}

// A folder of compiled Python: it and its names follow from the sources beside it, and from the
// compiled files that the commit itself has.
std::string CompiledFolder(const std::string& path, const TreeListing& listing) {
  std::string state = "compiled ";
  AddFiles(listing, Below(FolderOf(path)), ".py", state);
  AddFiles(listing, path + "/", "", state);
  return state;
}

std::string WhatIs(const std::string& path, const TreeListing& listing) {
  const std::string* id = listing.Find(path);
  const std::string source = SourceOfCompiled(path);
  if (!source.empty()) {
    // Ours unless the commit has it: its content follows from the source.
    const std::string* of = listing.Find(source);
    return absl::StrCat("compiled ", id ? *id : "none", " of ", of ? *of : "none");
  }
  if (id) return *id;
  if (NameOf(path) == kBytecodeFolder) return CompiledFolder(path, listing);
  return listing.HasFolder(path) ? "folder" : "none";
}

// What listing a folder shows: names and kinds.
std::string NamesIn(const std::string& folder, const TreeListing& listing) {
  if (NameOf(folder) == kBytecodeFolder) return CompiledFolder(folder, listing);
  if (!listing.HasFolder(folder)) return "none";
  std::string names;
  for (const std::string& name : listing.Names(folder)) {
    if (name == absl::StrCat(kBytecodeFolder, "/")) continue;  // the view leaves it out
    const std::string* id = listing.Find(Below(folder) + name);
    const bool link = id && absl::EndsWith(*id, std::string(1, TreeListing::kLink));
    absl::StrAppend(&names, absl::CEscape(name), link ? "@" : "", " ");
  }
  return names;
}

// Lists every form in which a module of this name exists: a package, a folder without __init__, a
// Python file, an extension.
std::string ModuleForms(const std::string& lookup, const TreeListing& listing) {
  std::vector<std::string> forms;
  if (listing.HasFolder(lookup)) {
    forms.push_back("/");
    for (const auto& [path, id] : listing.StartingWith(lookup + "/__init__."))
      forms.push_back(path.substr(lookup.size()));
  }
  for (const auto& [path, id] : listing.StartingWith(lookup + ".")) {
    const std::string ending = path.substr(lookup.size());
    if (ending == ".py" || ending == ".pyc" || absl::EndsWith(ending, ".so"))
      forms.push_back(ending);
  }
  if (listing.Find(lookup)) forms.push_back("file");  // or a link, which may lead to a folder
  return absl::StrJoin(forms, " ");
}

}  // namespace

absl::StatusOr<std::optional<Closure>> ClosureFromObserved(const Json& observed,
                                                           const std::string& origin) {
  if (!observed.is_object()) return std::nullopt;
  if (observed.value("observer", Json()) != std::string(kObserver) ||
      observed.value("version", Json()) != kVersion || observed.value("complete", Json()) != true)
    return std::nullopt;
  Closure closure;
  for (const auto& [party, tree] :
       {std::pair("engine", &closure.engine), std::pair("library", &closure.library)}) {
    const auto part = observed.find(party);
    if (part == observed.end()) continue;  // a subject without a tree
    if (!part->is_object())
      return absl::InvalidArgumentError(absl::StrCat(origin, ": ", party, ": no object"));
    ASSIGN_OR_RETURN(*tree, TreeFromJson(*part, absl::StrCat(origin, ": ", party)));
  }
  return closure;
}

std::string DependenceText(const Closure& closure) {
  std::string text(kTitle);
  for (const auto& [party, tree] :
       {std::pair('E', &closure.engine), std::pair('L', &closure.library)}) {
    absl::StrAppend(&text, std::string(1, party), "\n");
    for (const auto& [key, letter, list] : ListsOf(*tree)) {
      for (const std::string& name : *list)
        absl::StrAppend(&text, std::string(1, letter), absl::CEscape(name), "\n");
    }
  }
  return text;
}

absl::StatusOr<Closure> ClosureFromDependenceText(const std::string& text) {
  absl::string_view rest = text;
  const absl::Status unknown =
      absl::DataLossError("a kept dependence that this version did not write");
  if (!absl::ConsumePrefix(&rest, kTitle)) return unknown;
  Closure closure;
  TreeClosure* tree = nullptr;
  for (const absl::string_view line : absl::StrSplit(rest, '\n', absl::SkipEmpty())) {
    if (line == "E" || line == "L") {
      tree = line == "E" ? &closure.engine : &closure.library;
      continue;
    }
    if (!tree) return unknown;
    bool known = false;
    for (const auto& [key, letter, list] : ListsOf(*tree)) {
      if (line[0] != letter) continue;
      known = absl::CUnescape(line.substr(1), &list->emplace_back());
    }
    if (!known) return unknown;
  }
  return closure;
}

std::string StateOf(const TreeClosure& closure, const TreeListing& listing) {
  std::string state;
  for (const std::string& path : closure.read) {
    absl::string_view folder = path;
    if (absl::ConsumeSuffix(&folder, "/")) {
      absl::StrAppend(&state, NamesIn(folder == "." ? "" : std::string(folder), listing), "\n");
    } else {
      absl::StrAppend(&state, WhatIs(path, listing), "\n");
    }
  }
  for (const std::string& lookup : closure.lookups)
    absl::StrAppend(&state, ModuleForms(lookup, listing), "\n");
  for (const std::string& path : closure.asked)
    absl::StrAppend(&state, WhatIs(path, listing), "\n");
  return Sha256(state);
}

}  // namespace bkm
