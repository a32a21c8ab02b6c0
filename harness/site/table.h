// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SITE_TABLE_H_
#define HARNESS_SITE_TABLE_H_

#include <string>
#include <vector>

#include "harness/base/html.h"

namespace bkm {

struct Column {
  // A number is aligned to the right.
  Column(const char* name, bool is_number = false) : name(name), is_number(is_number) {}
  std::string name;
  bool is_number;
};

// A table with a caption, in a box that scrolls. `label` names the box for screen readers; empty:
// the caption does.
html::Markup CaptionedTable(const std::string& caption, const std::vector<Column>& columns,
                            const html::Markup& rows, const std::string& label = "");

// A cell of a table that is aligned to the right.
html::Markup NumberCell(const std::string& text);

}  // namespace bkm

#endif  // HARNESS_SITE_TABLE_H_
