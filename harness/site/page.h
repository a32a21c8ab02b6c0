// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
#ifndef HARNESS_SITE_PAGE_H_
#define HARNESS_SITE_PAGE_H_

#include <string>
#include <vector>

#include "harness/base/html.h"

namespace bkm {

// One page of the site, before the frame that all have in common is around it.
struct Page {
  std::string path;   // below the site's folder: "index.html", "runs/bkm/x.html"
  std::string title;  // of the window; the heading stands in `main`
  html::Markup main;
};

// What stands around every page.
struct SiteFrame {
  struct Entry {
    std::string path;
    std::string title;
  };
  std::vector<Entry> navigation;
  std::string made;  // "made on 2026-06-11 from 2 runs": the foot of every page
};

// `target` (a page's path, with or without #fragment) as seen from the page `from`.
std::string RelativeLink(const std::string& from, const std::string& target);

// `text` as part of a page's path: what is no letter, digit, dash, dot or underscore is a dash.
std::string PathPart(const std::string& text);

// The whole file. It loads nothing but the site's own style sheet and script, and asks browsers to
// refuse anything else.
std::string WholePage(const Page& page, const SiteFrame& frame);

// A way back up: links and, last, this page's own name.
html::Markup Trail(const std::string& from, const std::vector<SiteFrame::Entry>& above,
                   const std::string& here);

// Lines for a shell, with a button that copies them where there is a script.
html::Markup CommandBlock(const std::vector<std::string>& lines, const std::string& says);

// A table in a box that scrolls where the screen is narrow, which the keyboard reaches.
html::Markup ScrollBox(const std::string& label, const html::Markup& table);

}  // namespace bkm

#endif  // HARNESS_SITE_PAGE_H_
