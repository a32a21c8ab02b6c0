// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SITE_PAGE_H_
#define HARNESS_SITE_PAGE_H_

#include <string>
#include <vector>

#include "harness/base/html.h"

namespace bkm {

// One page of the site, without the common frame.
struct Page {
  std::string path;   // below the site's folder: "index.html", "runs/bkm/x.html"
  std::string title;  // of the window; the heading is part of `main`
  html::Markup main;
};

// The frame around every page.
struct SiteFrame {
  struct Entry {
    std::string path;
    std::string title;
  };
  std::vector<Entry> navigation;
  std::string made;  // "made on 2026-06-11 from 2 runs": the footer
};

// The link from the page `from` to `target`: a page's path, with or without #fragment.
std::string RelativeLink(const std::string& from, const std::string& target);

// `text` as part of a page's path: dashes replace all but letters, digits, dots and underscores.
std::string PathPart(const std::string& text);

// The whole HTML file. It loads only the site's own style sheet and script, and tells browsers to
// refuse anything else.
std::string WholePage(const Page& page, const SiteFrame& frame);

// Breadcrumbs: links to the pages above, then the name of this page.
html::Markup Trail(const std::string& from, const std::vector<SiteFrame::Entry>& above,
                   const std::string& here);

// Shell commands, with a copy button that the script adds.
html::Markup CommandBlock(const std::vector<std::string>& lines, const std::string& says);

// A table in a focusable box that scrolls on narrow screens.
html::Markup ScrollBox(const std::string& label, const html::Markup& table);

}  // namespace bkm

#endif  // HARNESS_SITE_PAGE_H_
