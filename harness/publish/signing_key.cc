// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/publish/signing_key.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "absl/strings/str_cat.h"
#include "harness/base/files.h"
#include "harness/base/hash.h"
#include "harness/base/status_macros.h"

namespace bkm {
namespace {

// No terminal may be asked for a passphrase.
int NoPassphrase(char*, int, int, void*) { return 0; }

using PemReader = EVP_PKEY* (*)(BIO*, EVP_PKEY**, pem_password_cb*, void*);

std::shared_ptr<void> Read(const std::string& text, PemReader reader) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(
      BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free);
  EVP_PKEY* key = reader(bio.get(), nullptr, &NoPassphrase, nullptr);
  if (key == nullptr) return nullptr;
  return {key, [](void* owned) { EVP_PKEY_free(static_cast<EVP_PKEY*>(owned)); }};
}

EVP_PKEY* Of(const std::shared_ptr<void>& key) { return static_cast<EVP_PKEY*>(key.get()); }

const unsigned char* Bytes(absl::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

using Context = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

}  // namespace

absl::StatusOr<SigningKey> SigningKey::Make(Key key, const std::filesystem::path& file) {
  const int kind = EVP_PKEY_get_base_id(Of(key));
  if (kind != EVP_PKEY_ED25519 && kind != EVP_PKEY_EC) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.string(),
                     " is neither an Ed25519 nor an ECDSA key: make one with "
                     "openssl genpkey -algorithm ed25519"));
  }
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(Of(key), &der);
  if (size <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(file.string(), " has no usable public key"));
  }
  SigningKey made;
  made.id_ = Sha256(absl::string_view(reinterpret_cast<char*>(der), static_cast<size_t>(size)));
  OPENSSL_free(der);
  made.hashes_itself_ = kind == EVP_PKEY_ED25519;
  made.key_ = std::move(key);
  return made;
}

absl::StatusOr<SigningKey> SigningKey::ReadPrivate(const std::filesystem::path& file) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  if (Key key = Read(text, &PEM_read_bio_PrivateKey)) return Make(std::move(key), file);
  return absl::InvalidArgumentError(
      absl::StrCat(file.string(),
                   " is not a private key in PEM form without a passphrase: make one with openssl "
                   "genpkey -algorithm ed25519"));
}

absl::StatusOr<SigningKey> SigningKey::ReadPublic(const std::filesystem::path& file) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  Key key = Read(text, &PEM_read_bio_PUBKEY);
  if (!key) key = Read(text, &PEM_read_bio_PrivateKey);
  if (key) return Make(std::move(key), file);
  return absl::InvalidArgumentError(absl::StrCat(
      file.string(), " is not a public key in PEM form: write it with openssl pkey -pubout"));
}

absl::StatusOr<std::string> SigningKey::Sign(absl::string_view message) const {
  const Context context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  size_t size = 0;
  const EVP_MD* const hash = hashes_itself_ ? nullptr : EVP_sha256();
  if (EVP_DigestSignInit(context.get(), nullptr, hash, nullptr, Of(key_)) != 1 ||
      EVP_DigestSign(context.get(), nullptr, &size, Bytes(message), message.size()) != 1)
    return absl::InvalidArgumentError("the key cannot sign");
  std::string signature(size, '\0');
  if (EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                     Bytes(message), message.size()) != 1)
    return absl::InvalidArgumentError("the key cannot sign");
  signature.resize(size);
  return signature;
}

bool SigningKey::Verify(absl::string_view message, absl::string_view signature) const {
  const Context context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  const EVP_MD* const hash = hashes_itself_ ? nullptr : EVP_sha256();
  return EVP_DigestVerifyInit(context.get(), nullptr, hash, nullptr, Of(key_)) == 1 &&
         EVP_DigestVerify(context.get(), Bytes(signature), signature.size(), Bytes(message),
                          message.size()) == 1;
}

}  // namespace bkm
