// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SITE_MATRIX_TABLE_H_
#define HARNESS_SITE_MATRIX_TABLE_H_

#include <functional>
#include <string>

#include "harness/base/html.h"
#include "harness/publish/published_table.h"

namespace bkm {

// The rows of the table of supported versions: one HTML table per kind of engine, a line per row
// and model, a column per attention and one for the layouts that ran. Rows that have expired on
// `today` (YYYY-MM-DD) say so. `link` gives the page of a cell's evidence; empty: no page.
html::Markup MatrixTables(const PublishedTable& table, const std::string& today,
                          const std::function<std::string(const Evidence&)>& link);

// The layouts of several ranks that a row ran with, their verdicts, and what was not run; "1 rank
// only" if there is none. Empty for an engine without layouts.
html::Markup LayoutsLine(const PublishedRow& row,
                         const std::function<std::string(const Evidence&)>& link);

// The form of filters; hidden until the script, which does the filtering, shows it.
html::Markup FilterForm(const PublishedTable& table);

}  // namespace bkm

#endif  // HARNESS_SITE_MATRIX_TABLE_H_
