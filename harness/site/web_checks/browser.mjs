// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// node browser.mjs TOOLS SITE CHECK: one check of a site in a real headless Chromium, from the files themselves. Prints what is
// wrong, a line each, and exits 1; 0 when nothing is. TOOLS is what tools/web/install prints.
import { createRequire } from 'node:module';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';

const [tools, site, check] = process.argv.slice(2);
const require = createRequire(join(tools, 'package.json'));
const puppeteer = require('puppeteer-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const root = pathToFileURL(site + '/').href;
const faults = [];
const fault = (text) => faults.push(text);

// Of the many pages of cells that are alike, the first few.
function pages(most = 8) {
  const all = readdirSync(site, { recursive: true }).filter((name) => name.endsWith('.html')).sort();
  const cells = all.filter((name) => name.startsWith('runs/') && !name.endsWith('index.html'));
  return [...all.filter((name) => !cells.includes(name)), ...cells.slice(0, most)];
}

async function open(browser, path, { scripts = true, dark = false, width = 1280 } = {}) {
  const page = await browser.newPage();
  page.on('console', (message) => { if (['error', 'warning', 'warn'].includes(message.type())) fault(`${path}: console: ${message.text()}`); });
  page.on('pageerror', (error) => fault(`${path}: ${error.message}`));
  page.on('dialog', (dialog) => { fault(`${path}: a dialog opened: ${dialog.message()}`); dialog.dismiss(); });
  page.on('request', (request) => {
    if (!request.url().startsWith(root) && !request.url().startsWith('data:')) fault(`${path}: asks for ${request.url()}`);
  });
  page.on('requestfailed', (request) => fault(`${path}: cannot load ${request.url()}`));
  await page.setJavaScriptEnabled(scripts);
  await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }]);
  await page.setViewport({ width, height: 900 });
  await page.goto(root + path, { waitUntil: 'load' });
  return page;
}

async function accessible(browser, dark, width) {
  for (const path of pages()) {
    const page = await open(browser, path, { dark, width });
    await page.evaluate(() => { for (const part of document.querySelectorAll('details')) part.open = true; });
    // Not by a script tag: the site's own policy refuses it.
    await page.evaluate(axe);
    const result = await page.evaluate(() => globalThis.axe.run({ resultTypes: ['violations'], preload: false }));
    for (const violation of result.violations) {
      const first = violation.nodes[0];
      fault(`${path}: ${violation.id} (${violation.nodes.length}): ${first.html.slice(0, 160)}: ${first.failureSummary.replace(/\s+/g, ' ')}`);
    }
    await page.close();
  }
}

const visibleRows = (page) => page.$$eval('table.matrix tbody tr', (rows) => rows.filter((row) => row.offsetParent !== null).length);

const checks = {
  // Every page loads with no error, nothing from elsewhere, and nothing that subjects wrote runs.
  async load(browser) {
    for (const path of pages(40)) {
      const page = await open(browser, path);
      if (await page.evaluate(() => globalThis.planted)) fault(`${path}: what a subject wrote ran`);
      const style = await page.evaluate(() => getComputedStyle(document.body).fontFamily);
      if (!style.includes('system-ui')) fault(`${path}: the style sheet was not used`);
      await page.close();
    }
  },

  // From the front page to the evidence of a verdict and back, by keyboard alone.
  async navigate(browser) {
    const page = await open(browser, 'index.html');
    await page.keyboard.press('Tab');
    if (await page.evaluate(() => document.activeElement.className) !== 'skip') fault('the first stop of Tab is not the skip link');
    await page.keyboard.press('Enter');
    if (await page.evaluate(() => location.hash) !== '#content') fault('the skip link does not lead to the content');
    await page.focus('table.matrix a.verdict');
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    if (outline === 'none') fault('the focus is not visible');
    await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')]);
    if (!page.url().includes('/runs/')) fault(`a verdict leads to ${page.url()}`);
    if (!(await page.$('ol.ladder'))) fault('a page of a cell has no ladder');
    await Promise.all([page.waitForNavigation(), page.click('nav.trail a')]);
    if (!page.url().endsWith('index.html')) fault(`the trail leads to ${page.url()}`);
    await page.close();
  },

  // Each filter narrows the table, together they narrow it more, "show all" undoes them, and the address keeps them.
  async filter(browser) {
    const page = await open(browser, 'index.html');
    const all = await visibleRows(page);
    if (all < 2) fault('too few rows to tell');
    for (const name of ['engine', 'version', 'library', 'attention', 'model', 'verdict']) {
      const values = await page.$$eval(`#filters select[name=${name}] option`, (options) => options.map((option) => option.value).filter(Boolean));
      if (values.length === 0) { fault(`${name}: nothing to choose`); continue; }
      let total = 0;
      for (const value of values) {
        await page.select(`#filters select[name=${name}]`, value);
        const rows = await visibleRows(page);
        total += rows;
        if (rows > all) fault(`${name}=${value} shows ${rows} of ${all} rows`);
        const said = await page.$eval('#shown', (status) => status.textContent);
        if (!said.startsWith(String(rows))) fault(`${name}=${value} shows ${rows} rows and says "${said}"`);
      }
      if (total < all && name !== 'version') fault(`no value of ${name} shows some rows: ${total} of ${all}`);
      await page.click('#filters button[type=reset]');
      await page.waitForFunction((wanted) => [...document.querySelectorAll('table.matrix tbody tr')].filter((row) => row.offsetParent !== null).length === wanted, { timeout: 2000 }, all)
        .catch(() => fault('"show all" does not show all'));
    }
    await page.type('#filters input[name=text]', 'no such text anywhere');
    if (await visibleRows(page) !== 0) fault('a text that is nowhere leaves rows');
    if (await page.$eval('#nothing', (element) => element.hidden)) fault('nothing is said of an empty table');
    await page.goto(root + 'index.html?verdict=broken', { waitUntil: 'load' });
    const wrong = await page.$$eval('table.matrix tbody tr', (rows) => rows.filter((row) => row.offsetParent !== null && !row.querySelector('[data-verdict=broken]')).length);
    if (wrong > 0) fault(`verdict=broken in the address shows ${wrong} other rows`);
    await page.close();
  },

  // The toggle changes the colours, and the next page remembers.
  async theme(browser) {
    const page = await open(browser, 'index.html');
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await ground();
    await page.click('#theme');
    const dark = await ground();
    if (light === dark) fault('the toggle changes nothing');
    await page.goto(root + 'about.html', { waitUntil: 'load' });
    if (await ground() !== dark) fault('the next page does not remember the colours');
    await page.evaluate(() => localStorage.clear());
    await page.close();
    const system = await open(browser, 'index.html', { dark: true });
    if (await system.evaluate(() => getComputedStyle(document.body).backgroundColor) !== dark) fault('dark by the system differs from dark by the toggle');
    await system.close();
  },

  // Without a script everything can be read, and no control is shown that does nothing.
  async noscript(browser) {
    for (const path of pages()) {
      const page = await open(browser, path, { scripts: false });
      const text = (await page.$eval('main', (main) => main.innerText)).trim();
      if (text.length < 100) fault(`${path}: says next to nothing`);
      const controls = await page.$$eval('button, select, input', (elements) => elements.filter((element) => element.offsetParent !== null).length);
      if (controls > 0) fault(`${path}: shows ${controls} controls that do nothing`);
      if (path === 'index.html' && await visibleRows(page) === 0) fault('the table is empty');
      await page.close();
    }
  },

  // Nothing is wider than a narrow screen; tables scroll in their boxes.
  async narrow(browser) {
    for (const path of pages()) {
      const page = await open(browser, path, { width: 360 });
      const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (over > 0) fault(`${path}: ${over} pixels too wide`);
      await page.close();
    }
  },

  'axe-light': (browser) => accessible(browser, false, 1280),
  'axe-dark': (browser) => accessible(browser, true, 1280),
  'axe-narrow': (browser) => accessible(browser, false, 360),

  // Not a check: pictures for people, into the folder of the environment's SHOTS.
  async shots(browser) {
    for (const [name, path, options] of [
      ['front-light', 'index.html', {}], ['front-dark', 'index.html', { dark: true }], ['front-narrow', 'index.html', { width: 390 }],
      ...(process.env.PAGES || '').split(' ').filter(Boolean).flatMap((each, i) => [[`page${i}-light`, each, {}], [`page${i}-dark`, each, { dark: true }]])]) {
      const page = await open(browser, path, options);
      await page.screenshot({ path: join(process.env.SHOTS, name + '.png'), fullPage: !process.env.FOLD });
      if (name === 'front-light') await page.pdf({ path: join(process.env.SHOTS, 'front.pdf'), format: 'A4' });
      await page.close();
    }
  },
};

if (!checks[check]) throw new Error(`no check ${check}: ${Object.keys(checks).join(', ')}`);
const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium', headless: true,
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
});
try {
  await checks[check](browser);
} finally {
  await browser.close();
}
for (const text of faults.slice(0, 40)) console.log(text);
process.exitCode = faults.length > 0 ? 1 : 0;
