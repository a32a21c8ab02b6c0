// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// node validate.mjs TOOLS SITE: every page against the rules of HTML. Prints what is wrong, a line each, and exits 1.
import { createRequire } from 'node:module';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const [tools, site] = process.argv.slice(2);
const { HtmlValidate, StaticConfigLoader } = createRequire(join(tools, 'package.json'))('html-validate');
const validator = new HtmlValidate(new StaticConfigLoader({
  extends: ['html-validate:standard', 'html-validate:a11y'],
  // How a file is written and not whether it is right, and a form that acts at once and sends nothing.
  rules: { 'long-title': 'off', 'no-inline-style': 'error', 'no-trailing-whitespace': 'off', 'require-sri': 'off', 'wcag/h32': 'off' },
}));
let faults = 0;
for (const name of readdirSync(site, { recursive: true }).filter((each) => each.endsWith('.html'))) {
  const report = await validator.validateString(readFileSync(join(site, name), 'utf8'), name);
  for (const result of report.results) {
    for (const message of result.messages) {
      if (++faults <= 40) console.log(`${name}:${message.line}:${message.column}: ${message.ruleId}: ${message.message}`);
    }
  }
}
process.exitCode = faults > 0 ? 1 : 0;
