// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_PUBLISH_SIGNING_KEY_H_
#define HARNESS_PUBLISH_SIGNING_KEY_H_

#include <filesystem>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace bkm {

// An Ed25519 or ECDSA (P-256, P-384) key, read from a PEM file as `openssl genpkey` writes it.
class SigningKey {
 public:
  static absl::StatusOr<SigningKey> ReadPrivate(const std::filesystem::path& file);
  // A public key, or the public part of a private one.
  static absl::StatusOr<SigningKey> ReadPublic(const std::filesystem::path& file);

  // Only for a private key.
  absl::StatusOr<std::string> Sign(absl::string_view message) const;
  bool Verify(absl::string_view message, absl::string_view signature) const;
  // SHA-256 of the public key (DER), in hexadecimal.
  const std::string& id() const { return id_; }

 private:
  using Key = std::shared_ptr<void>;  // an EVP_PKEY
  static absl::StatusOr<SigningKey> Make(Key key, const std::filesystem::path& file);

  Key key_;
  std::string id_;
  bool hashes_itself_ = false;  // Ed25519
};

}  // namespace bkm

#endif  // HARNESS_PUBLISH_SIGNING_KEY_H_
