// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/hash.h"

#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "harness/base/check.h"
#include "harness/base/descriptor.h"
#include "harness/base/files.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

class Digest {
 public:
  explicit Digest(const EVP_MD* algorithm) : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    HARNESS_CHECK(EVP_DigestInit_ex(context_.get(), algorithm, nullptr) == 1) << "no such hash";
  }
  void Add(absl::string_view bytes) {
    HARNESS_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1) << "update";
  }
  std::string Hex() {
    std::array<char, EVP_MAX_MD_SIZE> out;
    unsigned size = 0;
    HARNESS_CHECK(EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(out.data()),
                                     &size) == 1)
        << "final";
    return absl::BytesToHexString(absl::string_view(out.data(), size));
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace

std::string Sha256(absl::string_view bytes) {
  Digest digest(EVP_sha256());
  digest.Add(bytes);
  return digest.Hex();
}

std::string Sha1(absl::string_view bytes) {
  Digest digest(EVP_sha1());
  digest.Add(bytes);
  return digest.Hex();
}

absl::StatusOr<std::string> Sha256OfFile(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const Descriptor file, OpenRegularFile(path));
  return Sha256OfOpenFile(file.get(), path);
}

absl::StatusOr<std::string> Sha256OfOpenFile(int file, const std::filesystem::path& path) {
  Digest digest(EVP_sha256());
  std::vector<char> buffer(1 << 18);
  for (;;) {
    const ssize_t count = ::read(file, buffer.data(), buffer.size());
    if (count == 0) return digest.Hex();
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      return absl::UnavailableError(
          absl::StrCat("cannot read ", path.string(), ": ", std::strerror(errno)));
    }
    digest.Add(absl::string_view(buffer.data(), static_cast<size_t>(count)));
  }
}

}  // namespace bkm
