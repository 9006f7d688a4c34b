// One pool: what it holds and how it fares, its first records, its fields and its settings.

import { ago, count, counted, el, hidden, moment, read, seen, size } from "./dom.js";

const LEVELS = { bad: "failed", late: "due", note: "note" };

/** A figure with its name below it. */
const figure = (name, text, title) => el("div", { class: "figure", title }, el("b", {}, text), el("span", { class: "quiet" }, name));

const NUMBERS = ["Size", "Nulls", "Records", "Objects", "Straddling", "Overlap"];
const plain = (...headings) => el("thead", {}, el("tr", {}, ...headings.map((text) => el("th", { scope: "col", class: NUMBERS.includes(text) ? "plain number" : "plain" }, text))));

function healthPart({ health, pool }) {
  if (!health.lines.length) {
    return el("section", { class: "health", id: "health" }, el("p", { class: "good" }, el("span", { class: "level good" }, "well"), "nothing failed, nothing is due"));
  }
  const line = ({ level, part, says }) => el("li", {}, el("span", { class: `level ${level}` }, LEVELS[level]), el("b", {}, part), ` ${says}`);
  return el(
    "section", { class: "health", id: "health" },
    el("ul", {}, ...health.lines.map(line)),
    health.parked.length ? parkedPart(health, pool) : null,
  );
}

function parkedPart({ parked, parked_in_all: all }, pool) {
  const row = (one) => el("tr", {}, el("td", {}, one.file), el("td", { class: "number" }, size(one.size)), el("td", {}, moment(one.time)), el("td", { class: "bad" }, one.why));
  return el(
    "details", { id: "parked", open: parked.length <= 5 },
    el("summary", {}, `Parked files (${count(all)})`),
    el("div", { class: "wide" }, el("table", {}, plain("File", "Size", "Since", "Why"), el("tbody", {}, ...parked.map(row)))),
    el("p", { class: "quiet" }, `Mend a file, or release it: lake parked ${pool} --release FILE`),
  );
}

function factsPart(page) {
  const facts = [
    ["keys", page.low || page.high ? `${page.low} to ${page.high}` : ""],
    ["branches", page.branches.length > 1 ? page.branches.join(", ") : ""],
    ["tags", page.tags.join(", ")],
    ["complete", `since version ${count(page.complete)}`],
    ["removed", page.removed.objects ? `${counted(page.removed.objects, "object")}, ${size(page.removed.size)}; can come back until ${moment(page.removed.until)}` : ""],
    ["id", page.id],
  ];
  return el("dl", { class: "facts" }, ...facts.filter(([, value]) => value).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

function fieldsPart(page) {
  if (!page.fields.length) return el("p", { class: "quiet" }, "No fields yet: the first load brings them.");
  const known = page.fields.some((field) => field.nulls !== null);
  const cells = ({ name, type, nulls, low, high }) => [
    el("td", {}, name), el("td", { class: "quiet" }, type),
    ...(known ? [el("td", { class: "number" }, count(nulls)), el("td", {}, low ?? ""), el("td", {}, high ?? "")] : []),
  ];
  return el(
    "div", {},
    el("div", { class: "wide" }, el(
      "table", { id: "fields", class: "snug" },
      plain("Field", "Type", ...(known ? ["Nulls", "Least", "Greatest"] : [])),
      el("tbody", {}, ...page.fields.map((field) => el("tr", {}, ...cells(field)))),
    )),
    page.fields_in_all > page.fields.length ? el("p", { class: "quiet" }, `and ${counted(page.fields_in_all - page.fields.length, "more field")}`) : null,
    page.bounds ? el("p", { class: "quiet" }, `Nulls, least and greatest values are not known: ${page.bounds}.`) : null,
  );
}

/** The ranges between split points; nothing for a pool without any. */
function rangesPart({ ranges, ranges_in_all: all }) {
  if (!ranges.length) return [];
  const most = Math.max(1, ...ranges.map((one) => one.size));
  const row = (one) => el(
    "tr", {}, el("td", {}, one.low), el("td", {}, one.high),
    ...[count(one.records), size(one.size), count(one.objects), count(one.straddling), count(one.depth)].map((text) => el("td", { class: "number" }, text)),
    el("td", {}, el("meter", { min: 0, max: most, value: one.size, title: size(one.size) })),
  );
  return [
    el("h3", {}, `Ranges (${count(all)})`),
    el("div", { class: "wide" }, el("table", { id: "ranges", class: "snug" }, plain("From", "To", "Records", "Size", "Objects", "Straddling", "Overlap", ""), el("tbody", {}, ...ranges.map(row)))),
    ...(all > ranges.length ? [el("p", { class: "quiet" }, `and ${counted(all - ranges.length, "more range")}`)] : []),
  ];
}

function settingsPart({ settings }) {
  const table = (rows) => el("div", { class: "wide" }, el(
    "table", { class: "settings" },
    el("tbody", {}, ...rows.map(({ name, text, meaning }) => el("tr", {}, el("td", {}, name), el("td", {}, text || "(empty)"), el("td", { class: "quiet" }, meaning)))),
  ));
  const chosen = settings.filter((one) => one.chosen);
  const others = settings.filter((one) => !one.chosen);
  return el(
    "div", { id: "settings" },
    chosen.length ? table(chosen) : el("p", { class: "quiet" }, "Every setting has its default."),
    el("details", {}, el("summary", {}, `${counted(others.length, "setting")} at the default`), table(others)),
  );
}

/** The first records; the pane says what it waits for, and why it stays empty. */
function recordsPart(lake, name, branch) {
  const pane = el("div", { id: "records" }, el("p", { class: "quiet" }, "Reading the first records…"));
  read("records", { lake, pool: name, branch }).then((sample) => {
    if (!sample.rows.length) {
      pane.replaceChildren(el("p", { class: "quiet" }, "No records in this pool."));
      return;
    }
    const cell = (value, index) => el("td", { class: sample.numbers[index] ? "number" : value === null ? "quiet" : null, title: value }, value ?? "null");
    const more = [
      sample.more ? `the first ${count(sample.rows.length)} in the order of the key` : "all records",
      sample.left_out ? `without ${counted(sample.left_out, "more field")}` : "",
    ].filter(Boolean).join(", ");
    pane.replaceChildren(
      el("div", { class: "wide" }, el(
        "table", { class: "snug" },
        el("thead", {}, el("tr", {}, ...sample.fields.map((field, index) => el("th", { scope: "col", class: sample.numbers[index] ? "plain number" : "plain", title: sample.types[index] }, field)))),
        el("tbody", {}, ...sample.rows.map((row) => el("tr", {}, ...row.map(cell)))),
      )),
      el("p", { class: "quiet" }, more),
    );
  }).catch((error) => pane.replaceChildren(el("p", { class: "bad" }, `the records cannot be shown: ${error.message}`)));
  return pane;
}

export async function showPool(lake, name, go, at) {
  const page = await read("pool", { lake, pool: name, branch: at.branch });
  const base = name.split(".$")[0];
  const parts = [base, ...page.sub_pools.map((one) => one.pool)];
  const beside = new Map(page.sub_pools.map((one) => [one.pool, one.records]));
  return [
    el(
      "div", { class: "bar" }, el("h2", {}, name), el("span", { class: "quiet" }, `${page.kind} pool, key ${page.key || "(arrival)"}${page.clone_of ? `, clone of ${page.clone_of}` : ""}${page.clones.length ? `, cloned as ${page.clones.join(", ")}` : ""}`),
      ...(parts.length < 2 ? [] : parts.map((part) => el(
        "button", { type: "button", "aria-pressed": String(part === name), click: () => go("pool", part) },
        beside.has(part) ? `${part} (${count(beside.get(part))})` : part,
      ))),
    ),
    el(
      "div", { class: "figures", id: "figures" },
      figure("records", seen(page), hidden(page)),
      ...(hidden(page) ? [figure("in objects", count(page.stored), "records that objects hold: deleted ones and older versions too")] : []),
      figure(page.objects === 1 ? "object" : "objects", count(page.objects)),
      figure("size", size(page.size)),
      figure("overlap at one key", count(page.depth), "the most objects that overlap at one key"),
      figure(page.tombstones === 1 ? "open delete" : "open deletes", count(page.tombstones), "deletes whose records are not removed from the objects yet"),
      figure("version", count(page.version), moment(page.time)),
      figure("changed", ago(page.time, page.now) || "never", moment(page.time)),
    ),
    healthPart(page),
    el("h3", {}, "Records"), recordsPart(lake, name, page.branch),
    el("h3", {}, `Fields (${count(page.fields_in_all)})`), fieldsPart(page),
    ...rangesPart(page),
    el("h3", {}, "Settings"), settingsPart(page),
    el("h3", {}, "More"), factsPart(page),
  ];
}
