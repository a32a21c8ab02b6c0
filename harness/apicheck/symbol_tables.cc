// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/apicheck/symbol_tables.h"

#include <algorithm>
#include <mutex>
#include <thread>

#include "absl/strings/str_cat.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

constexpr int kThreads = 2;
// Files per Python process: few enough that the threads end at about the same time.
constexpr size_t kChunk = 256;

}  // namespace

int Numbering::Of(absl::string_view text) {
  const auto [it, added] = numbers_.emplace(std::string(text), static_cast<int>(texts_.size()));
  if (added) texts_.emplace_back(text);
  return it->second;
}

absl::StatusOr<std::unique_ptr<SymbolTables>> SymbolTables::Open(
    const std::filesystem::path& python, const std::filesystem::path& cache) {
  SymbolScanner scanner(python);
  ASSIGN_OR_RETURN(const std::string version, scanner.Version());
  ASSIGN_OR_RETURN(SymbolStore store,
                   SymbolStore::Open(cache / "symbols" / absl::StrCat(version, ".sqlite")));
  std::unique_ptr<SymbolTables> tables(new SymbolTables(std::move(scanner), std::move(store)));
  ASSIGN_OR_RETURN(const std::vector<std::string> blobs, tables->store_.Blobs());
  for (const std::string& blob : blobs) tables->blobs_.Of(blob);
  tables->known_.assign(blobs.size(), true);
  return tables;
}

absl::Status SymbolTables::Scan(const std::vector<int>& blobs, const Batch& batch) {
  known_.resize(blobs_.size());
  std::vector<int> missing = blobs;
  std::erase_if(missing, [&](int blob) { return blob < 0 || known_[blob]; });
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  std::mutex mutex;
  size_t next = 0;
  absl::Status failure;
  const auto work = [&] {
    for (;;) {
      std::vector<std::string> ids;
      {
        const std::lock_guard<std::mutex> lock(mutex);
        if (!failure.ok()) return;
        for (; next < missing.size() && ids.size() < kChunk; ++next) {
          ids.push_back(blobs_.Text(missing[next]));
        }
      }
      if (ids.empty()) return;
      absl::StatusOr<std::string> text = batch(ids);
      absl::StatusOr<std::vector<ScannedFile>> files =
          text.ok() ? scanner_.Scan(*std::move(text)) : text.status();
      const std::lock_guard<std::mutex> lock(mutex);
      absl::Status status = files.status();
      if (status.ok()) status = store_.Put(*files);
      if (!status.ok()) {
        failure = status;
        return;
      }
      for (const ScannedFile& file : *files) known_[blobs_.Of(file.blob)] = true;
      scanned_ += static_cast<int>(files->size());
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < kThreads && missing.size() > kChunk; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return failure;
}

SymbolTables::Entry& SymbolTables::EntryOf(int blob) {
  while (static_cast<int>(entries_.size()) <= blob) entries_.emplace_back();
  return entries_[blob];
}

void SymbolTables::Read(int blob, Entry& entry) {
  entry.asked = true;
  if (blob >= static_cast<int>(known_.size()) || !known_[blob]) return;
  const absl::StatusOr<std::optional<std::string>> text = store_.Table(blobs_.Text(blob));
  if (!text.ok() || !*text) {
    failure_.Update(text.status());
    return;
  }
  absl::StatusOr<SymbolTable> table = SymbolTableFromJson(**text);
  failure_.Update(table.status());
  if (!table.ok() || table->unread) return;
  entry.table = std::make_unique<SymbolTable>(*std::move(table));
  entry.names = std::make_unique<Names>(NamesOf(entry.table->body));
}

const SymbolTable* SymbolTables::Table(int blob) {
  if (blob < 0) return nullptr;
  Entry& entry = EntryOf(blob);
  if (!entry.asked) Read(blob, entry);
  return entry.table.get();
}

const Names& SymbolTables::NamesIn(int blob) {
  static const Names& kNone = *new Names();
  return Table(blob) ? *EntryOf(blob).names : kNone;
}

const Names& SymbolTables::NamesIn(const ClassDefinition& klass) {
  const auto known = class_names_.find(&klass);
  if (known != class_names_.end()) return known->second;
  return class_names_.emplace(&klass, NamesOf(klass.body)).first->second;
}

const Block* SymbolTables::Body(int blob, int index) {
  if (!Table(blob)) return nullptr;
  Entry& entry = EntryOf(blob);
  if (!entry.asked_bodies) {
    entry.asked_bodies = true;
    const absl::StatusOr<std::optional<std::string>> text = store_.Bodies(blobs_.Text(blob));
    failure_.Update(text.status());
    if (text.ok() && *text) {
      absl::StatusOr<std::vector<Block>> bodies = BodiesFromJson(**text);
      failure_.Update(bodies.status());
      if (bodies.ok()) entry.table->bodies = *std::move(bodies);
    }
  }
  const std::vector<Block>& bodies = entry.table->bodies;
  return index >= 0 && index < static_cast<int>(bodies.size()) ? &bodies[index] : nullptr;
}

}  // namespace bkm
