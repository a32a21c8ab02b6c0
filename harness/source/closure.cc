// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/source/closure.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

Json TreeJson(const TreeClosure& tree) {
  return {{"read", tree.read}, {"lookups", tree.lookups}, {"asked", tree.asked}};
}

TreeClosure TreeFromJson(const Json& json) {
  return {.read = json.at("read"), .lookups = json.at("lookups"), .asked = json.at("asked")};
}

bool AreStrings(const Json& json) {
  if (!json.is_array()) return false;
  for (const Json& item : json) {
    if (!item.is_string()) return false;
  }
  return true;
}

// Collects one party's lists from the three places where the observation keeps them.
absl::StatusOr<TreeClosure> TreeOf(const Json& json, const char* party, const std::string& origin) {
  const auto part = [&](const Json* where) {
    return where && where->is_object() && where->contains(party) ? (*where)[party] : Json::array();
  };
  const auto child = [&](const char* key) { return json.contains(key) ? &json[key] : nullptr; };
  const Json read = part(&json), lookups = part(child("lookups")), asked = part(child("asked"));
  if (!AreStrings(read) || !AreStrings(lookups) || !AreStrings(asked))
    return absl::InvalidArgumentError(
        absl::StrCat(origin, ": closure of the ", party, ": lists of strings are needed"));
  return TreeClosure{.read = read, .lookups = lookups, .asked = asked};
}

std::string WhatIs(const std::string& path, const TreeListing& listing) {
  if (const std::string* id = listing.Find(path)) return *id;
  return listing.HasFolder(path == "." ? "" : path) ? "folder" : "none";
}

// Lists every form in which a module of this name exists: a package, a folder without __init__.py,
// a Python file, an extension.
std::string ModuleForms(const std::string& lookup, const TreeListing& listing) {
  const size_t slash = lookup.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : lookup.substr(0, slash);
  const std::string name = slash == std::string::npos ? lookup : lookup.substr(slash + 1);
  std::vector<std::string> forms;
  for (const std::string& entry : listing.Names(folder)) {
    const bool extension = absl::EndsWith(entry, ".so");
    if (entry == name + ".py" || (extension && absl::StartsWith(entry, name + ".")))
      forms.push_back(entry);
    if (entry != name + "/") continue;
    forms.push_back(entry);
    for (const std::string& inside : listing.Names(lookup)) {
      if (absl::StartsWith(inside, "__init__.")) forms.push_back(entry + inside);
    }
  }
  return absl::StrJoin(forms, " ");
}

}  // namespace

absl::StatusOr<Closure> ClosureFromJson(const Json& json, const std::string& origin) {
  Closure closure;
  if (!json.is_object()) return closure;
  ASSIGN_OR_RETURN(closure.engine, TreeOf(json, "engine", origin));
  ASSIGN_OR_RETURN(closure.library, TreeOf(json, "library", origin));
  const Json escapes = json.value("escapes", Json::array());
  if (!AreStrings(escapes))
    return absl::InvalidArgumentError(absl::StrCat(origin, ": closure.escapes: a list is needed"));
  closure.escapes = escapes;
  closure.whole = json.value("whole", Json()) == true;
  return closure;
}

std::string DependenceText(const Closure& closure) {
  return ToLine({{"engine", TreeJson(closure.engine)}, {"library", TreeJson(closure.library)}});
}

absl::StatusOr<Closure> ClosureFromDependenceText(const std::string& text) {
  ASSIGN_OR_RETURN(const Json json, ParseJson(text, "a kept closure"));
  Closure closure{.whole = true};
  for (const auto& [party, tree] :
       {std::pair("engine", &closure.engine), std::pair("library", &closure.library)}) {
    const Json& part = json.is_object() && json.contains(party) ? json[party] : Json();
    for (const char* key : {"read", "lookups", "asked"}) {
      if (!part.is_object() || !part.contains(key) || !AreStrings(part[key]))
        return absl::DataLossError(absl::StrCat("a kept closure lacks ", party, ".", key));
    }
    *tree = TreeFromJson(part);
  }
  return closure;
}

std::string StateOf(const TreeClosure& closure, const TreeListing& listing) {
  std::string state;
  for (const std::string& path : closure.read) {
    absl::string_view folder = path;
    if (absl::ConsumeSuffix(&folder, "/")) {
      absl::StrAppend(&state, absl::StrJoin(listing.Names(folder == "." ? "" : folder), " "), "\n");
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
