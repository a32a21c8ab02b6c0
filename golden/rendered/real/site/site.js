// SPDX-License-Identifier: Apache-2.0
// Copyright the bkm authors.
// Conveniences only: every page is readable without this script.
(() => {
  'use strict';
  const root = document.documentElement;
  const store = {
    get() { try { return localStorage.getItem('bkm-theme'); } catch { return null; } },
    set(theme) { try { localStorage.setItem('bkm-theme', theme); } catch { /* private window */ } },
  };
  // Before the first paint, so that the page does not flash.
  const remembered = store.get();
  if (remembered === 'light' || remembered === 'dark') root.dataset.theme = remembered;
  root.classList.add('scripted');

  const systemIsDark = () => matchMedia('(prefers-color-scheme: dark)').matches;
  const shown = () => root.dataset.theme || (systemIsDark() ? 'dark' : 'light');

  function makeThemeButton() {
    const button = document.getElementById('theme');
    if (!button) return;
    const tell = () => {
      const other = shown() === 'dark' ? 'light' : 'dark';
      button.textContent = other === 'dark' ? 'Dark' : 'Light';
      button.setAttribute('aria-label', `Use ${other} colours`);
    };
    button.hidden = false;
    button.addEventListener('click', () => {
      root.dataset.theme = shown() === 'dark' ? 'light' : 'dark';
      store.set(root.dataset.theme);
      tell();
    });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', tell);
    tell();
  }

  function makeCopyButtons() {
    for (const block of document.querySelectorAll('.command')) {
      const button = document.createElement('button');
      button.type = 'button';
      button.className = 'copy';
      button.textContent = 'Copy';
      button.setAttribute('aria-label', `Copy: ${block.getAttribute('data-says') || 'command'}`);
      button.addEventListener('click', async () => {
        try {
          await navigator.clipboard.writeText(block.querySelector('code').textContent);
          button.textContent = 'Copied';
        } catch {
          button.textContent = 'Select and copy by hand';
        }
        setTimeout(() => { button.textContent = 'Copy'; }, 2000);
      });
      block.append(button);
    }
  }

  // The filters of the table. Each row has data-engine, data-version, data-library, data-model and a
  // cell per attention with data-attention and data-verdict. The address holds the filters, so
  // that a view can be shared.
  function makeFilters() {
    const form = document.getElementById('filters');
    if (!form) return;
    form.hidden = false;
    const fields = [...form.elements].filter((field) => field.name);
    const tables = [...document.querySelectorAll('table.matrix')];
    const count = document.getElementById('shown');

    const asked = () => Object.fromEntries(fields.map((field) => [field.name, field.value.trim()]));
    const fits = (wanted, value) => !wanted || wanted === value;

    function showRow(row, want) {
      let cells = [...row.querySelectorAll('[data-attention]')];
      if (want.attention) cells = cells.filter((cell) => cell.dataset.attention === want.attention);
      if (want.verdict) cells = cells.filter((cell) => cell.dataset.verdict.split(' ').includes(want.verdict));
      else cells = cells.filter((cell) => !want.attention || cell.dataset.verdict);
      const words = want.text.toLowerCase().split(/\s+/).filter(Boolean);
      const text = (row.textContent + ' ' + row.dataset.search).toLowerCase();
      row.hidden = !(fits(want.engine, row.dataset.engine) && fits(want.library, row.dataset.library) &&
        fits(want.version, row.dataset.version) && fits(want.model, row.dataset.model) &&
        ((!want.attention && !want.verdict) || cells.length > 0) && words.every((word) => text.includes(word)));
      return !row.hidden;
    }

    function apply() {
      const want = asked();
      let rows = 0, total = 0;
      for (const table of tables) {
        let here = 0;
        for (const row of table.tBodies[0].rows) {
          total += 1;
          if (showRow(row, want)) here += 1;
        }
        for (const cell of table.querySelectorAll('[data-attention]'))
          cell.classList.toggle('unasked', Boolean(want.attention) && cell.dataset.attention !== want.attention);
        table.closest('section').hidden = here === 0;
        rows += here;
      }
      count.textContent = rows === total ? `${total} rows` : `${rows} of ${total} rows`;
      document.getElementById('nothing').hidden = rows > 0;
      const query = new URLSearchParams(Object.entries(want).filter(([, value]) => value)).toString();
      try { history.replaceState(null, '', query ? `?${query}#table` : location.pathname + location.hash); } catch { /* from a file */ }
    }

    for (const [name, value] of new URLSearchParams(location.search)) {
      const field = form.elements.namedItem(name);
      if (field && field.name) field.value = value;
    }
    form.addEventListener('input', apply);
    form.addEventListener('reset', () => setTimeout(apply));
    form.addEventListener('submit', (event) => event.preventDefault());
    apply();
  }

  document.addEventListener('DOMContentLoaded', () => {
    makeThemeButton();
    makeCopyButtons();
    makeFilters();
  });
})();
