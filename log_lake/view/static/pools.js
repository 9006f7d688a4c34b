// Pools at a glance: a table that is sorted by its headings and narrowed by a word.

import { ago, count, el, hidden, moment, read, seen, size } from "./dom.js";
import { healthLine } from "./health.js";

const figure = (name) => (row) => row.figures?.[name];
const COLUMNS = [
  { label: "Pool", value: (row) => row.pool },
  { label: "Kind", value: (row) => row.kind },
  { label: "Key", value: (row) => row.key },
  { label: "Records", value: figure("records"), text: (_, __, row) => (row.figures ? seen(row.figures) : ""), title: "records that readers see; ≤: at most so many", of: (row) => row.figures && hidden(row.figures) },
  { label: "Objects", value: figure("objects"), text: count },
  { label: "Depth", value: figure("depth"), text: count, title: "the most objects that overlap at one key" },
  { label: "Tombstones", value: figure("tombstones"), text: count },
  { label: "Branches", value: figure("branches"), text: count },
  { label: "Tail", value: (row) => row.tail, text: count, title: "journal entries since the newest checkpoint" },
  { label: "Written", value: (row) => row.written, text: ago, when: true, title: "when records last changed" },
  { label: "Upkeep", value: (row) => row.kept, text: ago, when: true, title: "the last compaction, expiry or vacuum" },
  { label: "Lag", value: (row) => Object.keys(row.lag ?? {}).join(", ") || undefined, title: "agents that have not done what the pool's settings ask for" },
  { label: "Live", value: figure("live"), text: size, title: "bytes of the objects of main" },
  { label: "Held", value: figure("held"), text: size, title: "with removed objects that are still on the store" },
];

const FIRST_ROWS = 100; // about two screens: they are drawn at once, the others a part at a time
const MORE_ROWS = 300;

let order = { column: 0, down: false };

function sorted(rows) {
  const { value } = COLUMNS[order.column];
  const sign = order.down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === y) return a.pool < b.pool ? -1 : 1;
    if (x === undefined || x === null) return 1;
    if (y === undefined || y === null) return -1;
    return x < y ? -sign : sign;
  });
}

function line(row, now, go) {
  const open = el("button", { type: "button", click: () => go("pool", row.pool) }, row.pool);
  if (row.error) {
    return el("tr", {}, el("td", {}, open), el("td", { colSpan: COLUMNS.length - 1, class: "bad" }, row.error));
  }
  const cells = COLUMNS.slice(1).map((column) => {
    const value = column.value(row);
    let title = column.when ? moment(value) : null;
    if (column.label === "Upkeep" && row.how) title = `${title}: ${row.how}`;
    if (column.label === "Lag" && row.lag) title = Object.values(row.lag).join("\n");
    if (column.of) title = column.of(row);
    return el("td", { class: column.text ? "number" : null, title }, column.text ? column.text(value, now, row) : value ?? "");
  });
  return el("tr", {}, el("td", {}, open), ...cells);
}

export async function showPools(lake, _, go) {
  const table = await read("pools", { lake });
  const body = el("tbody");
  let turn = 0;
  const shown = el("span", { class: "quiet" });
  const word = el("input", { type: "search", placeholder: "Filter by name", "aria-label": "Filter by name", input: () => fill() });
  const headings = COLUMNS.map((column, index) => el(
    "th",
    { class: column.text ? "number" : null, title: column.title, scope: "col" },
    el("button", { type: "button", click: () => sort(index) }, column.label),
  ));

  function fill() {
    const sought = word.value.trim().toLowerCase();
    const rows = sorted(table.pools.filter((row) => row.pool.toLowerCase().includes(sought)));
    const part = ++turn;
    body.replaceChildren(...rows.slice(0, FIRST_ROWS).map((row) => line(row, table.now, go)));
    const more = (from) => {
      if (part !== turn || from >= rows.length) return;
      body.append(...rows.slice(from, from + MORE_ROWS).map((row) => line(row, table.now, go)));
      setTimeout(() => more(from + MORE_ROWS), 0);
    };
    setTimeout(() => more(FIRST_ROWS), 0);
    shown.textContent = `${count(rows.length)} of ${count(table.total)} pools`;
    headings.forEach((heading, index) => {
      heading.setAttribute("aria-sort", index !== order.column ? "none" : order.down ? "descending" : "ascending");
      heading.firstChild.textContent = COLUMNS[index].label + (index !== order.column ? "" : order.down ? " ▾" : " ▴");
    });
  }

  function sort(column) {
    order = { column, down: column === order.column ? !order.down : Boolean(COLUMNS[column].text) };
    fill();
  }

  fill();
  return [
    ...(table.pools.length ? [healthLine(lake, go)] : []),
    el("div", { class: "bar" }, word, shown),
    table.pools.length ? el("div", { class: "wide" }, el("table", { id: "pools" }, el("thead", {}, el("tr", {}, ...headings)), body))
      : el("p", { class: "quiet" }, "No pools yet; make one with: lake create POOL --key FIELD"),
  ];
}
