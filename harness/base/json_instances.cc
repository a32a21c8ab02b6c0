// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include <nlohmann/json.hpp>

// What json.h declares as instantiated elsewhere. On its own, because it takes as long to compile
// as a chunk of other sources and never changes.
template class nlohmann::basic_json<>;
template class nlohmann::basic_json<nlohmann::ordered_map>;
