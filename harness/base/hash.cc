// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/base/hash.h"

#include <openssl/evp.h>

#include <array>
#include <fstream>
#include <memory>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "harness/base/check.h"

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
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(absl::StrCat("cannot read ", path.string()));
  Digest digest(EVP_sha256());
  std::vector<char> buffer(1 << 20);
  while (in.read(buffer.data(), buffer.size()) || in.gcount() > 0) {
    digest.Add(absl::string_view(buffer.data(), in.gcount()));
  }
  if (in.bad())
    return absl::UnavailableError(absl::StrCat("cannot read ", path.string(), " to its end"));
  return digest.Hex();
}

}  // namespace bkm
