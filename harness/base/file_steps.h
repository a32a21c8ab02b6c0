// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_BASE_FILE_STEPS_H_
#define HARNESS_BASE_FILE_STEPS_H_

#include <filesystem>

#include "absl/strings/string_view.h"

namespace bkm {

// The steps in which files.h writes. Each returns 0 or an errno. Tests replace them to let one
// fail, and bkm torture records them to replay power cuts.
class FileSteps {
 public:
  virtual ~FileSteps() = default;
  virtual int Write(int file, const std::filesystem::path& path, absl::string_view content);
  virtual int Sync(int file, const std::filesystem::path& path);
  virtual int Rename(const std::filesystem::path& from, const std::filesystem::path& to);
  virtual int SyncFolder(int folder, const std::filesystem::path& path);
  virtual int SyncTree(int folder, const std::filesystem::path& path);
  // Called before `path` and everything below it is removed.
  virtual void Remove(const std::filesystem::path& path);

  // The system's steps, or those of the innermost ReplacedFileSteps of the process.
  static FileSteps& Current();
};

// Replaces the steps of the whole process until it goes out of scope.
class ReplacedFileSteps {
 public:
  explicit ReplacedFileSteps(FileSteps& steps);
  ~ReplacedFileSteps();
  ReplacedFileSteps(const ReplacedFileSteps&) = delete;
  ReplacedFileSteps& operator=(const ReplacedFileSteps&) = delete;

 private:
  FileSteps* const before_;
};

}  // namespace bkm

#endif  // HARNESS_BASE_FILE_STEPS_H_
