// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#include "harness/site/table.h"

#include "harness/site/page.h"

namespace bkm {

using html::Element;
using html::Markup;

Markup CaptionedTable(const std::string& caption, const std::vector<Column>& columns,
                      const Markup& rows, const std::string& label) {
  Markup head;
  for (const Column& column : columns) {
    html::Attributes attributes = {{"scope", "col"}};
    if (column.is_number) attributes.push_back({"class", "number"});
    head << Element("th", attributes, column.name);
  }
  return ScrollBox(
      label.empty() ? caption : label,
      Element("table", {Element("caption", caption), Element("thead", Element("tr", head)),
                        Element("tbody", rows)}));
}

Markup NumberCell(const std::string& text) { return Element("td", {{"class", "number"}}, text); }

}  // namespace bkm
