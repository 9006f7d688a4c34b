// The calendar of a pool: which intervals it holds, lacks, or has late.

import { $, airflow, count, counted, el, host, moment, note, read } from "./dom.js";

const COLUMNS = { hour: 24, day: 31, week: 53, month: 12 };
const NAMES = { held: "held", gap: "not held", late: "late" };

function cell(one) {
  const says = [`${one.begin} to ${one.end}: ${NAMES[one.state]}`, one.version === null ? "" : `version ${count(one.version)}`, one.loaded === null ? "" : `loaded ${moment(one.loaded)}`];
  const node = el("span", { class: `cell ${one.state}`, title: says.filter(Boolean).join(", ") });
  node.style.gridColumn = one.column + 1;
  return node;
}

/** A row says in words what its cells show. */
function row({ name, cells }, columns) {
  const states = Object.keys(NAMES).map((state) => [state, cells.filter((one) => one.state === state).length]).filter(([, number]) => number);
  const says = `${name}: ${states.map(([state, number]) => `${count(number)} ${NAMES[state]}`).join(", ")}`;
  const line = el("div", { class: "cells", role: "img", "aria-label": says }, ...cells.map(cell));
  line.style.gridTemplateColumns = `repeat(${columns}, minmax(0, 1fr))`;
  return el("li", {}, el("span", { class: "quiet" }, name), line);
}

const legend = () => el("p", { class: "legend" }, ...Object.entries(NAMES).map(([state, name]) => el("span", { class: "entry" }, el("span", { class: `cell ${state}` }), name)));

function sentence({ total, gaps, late, every, complete }) {
  const held = total - gaps;
  const parts = [
    held === total ? `All ${counted(total, every)} are held.` : `${count(held)} of ${counted(total, every)} ${held === 1 ? "is" : "are"} held.`,
    late ? `${count(late)} ${late === 1 ? "is" : "are"} late.` : "",
    complete ? `Complete until ${complete}.` : "The first is not held.",
  ];
  return parts.filter(Boolean).join(" ");
}

/** A button for each run of gaps: the page asks Airflow's own API for a backfill, as its user.  Airflow says whether
 * the user may start runs of the DAG, and has one backfill of a DAG at a time. */
function backfillButtons(backfills, { dag, lake, pool }) {
  const name = el("input", { type: "text", id: "backfill-dag", value: dag, autocomplete: "off", spellcheck: false });
  const begin = async (one, button) => {
    const asked = name.value.trim();
    button.disabled = true;
    try {
      // only the lake's own DAG has these parameters
      const conf = asked === dag ? { dag_run_conf: { lake: lake.run, pools: [pool] } } : {};
      const made = await airflow("POST", "backfills", { dag_id: asked, from_date: one.first, to_date: one.last, reprocess_behavior: "completed", ...conf });
      note(`${asked}: backfill ${made.id} from ${one.first} has begun `);
      const page = new URL(`../dags/${encodeURIComponent(asked)}/backfills`, document.baseURI).href;
      $("note").append(el("a", { href: page, target: "_top" }, "its page in Airflow"));
    } catch (error) {
      button.disabled = false;
      note(`${asked}: ${error.message}`, true);
    }
  };
  const why = lake?.run == null ? "the address of this lake may hold a secret: name it by a connection in LAKE_VIEW_LAKES" : "";
  const button = (one) => {
    const node = el("button", { type: "button", disabled: Boolean(why), title: why || `load ${one.first} to ${one.last}`, click: () => begin(one, node) }, `Load ${one.first.slice(0, 16)} to ${one.last.slice(0, 16)}`);
    return node;
  };
  return [
    el("p", {}, el("label", { for: "backfill-dag" }, "DAG "), name),
    el("div", { class: "bar", id: "backfills" }, ...backfills.map(button)),
  ];
}

function backfillsPart({ backfills, backfills_in_all: all, dag }, lake, pool) {
  if (!backfills.length) return [];
  const buttons = host.server === "airflow" ? backfillButtons(backfills, { dag, lake, pool }) : [];
  const says = buttons.length ? "Each button, and each command, loads exactly a gap" : "These commands load exactly the gaps";
  return [
    el("h3", {}, "Load the gaps"),
    el("p", { class: "quiet" }, `${says}. Start each when the one before has ended; another DAG has another --dag-id.`),
    ...buttons,
    el("pre", { class: "commands" }, backfills.map((one) => one.command).join("\n")),
    ...(all > backfills.length ? [el("p", { class: "quiet" }, `and ${counted(all - backfills.length, "more backfill")}; lake coverage --backfill prints all`)] : []),
  ];
}

export async function showCoverage(lake, name, go, at, offered) {
  const page = await read("coverage", { lake, pool: name, branch: at.branch });
  const bar = el("div", { class: "bar" }, el("h2", {}, `Coverage of ${name}`), page.told ? el("span", { class: "quiet" }, `a cell a ${page.every}, ${page.zone}`) : null);
  if (!page.told) return [bar, el("p", { class: "quiet" }, "The key of this pool begins with no time, so there are no intervals.")];
  if (!page.total) return [bar, el("p", { class: "quiet" }, "No replace has brought an interval. The setting intervals.since says since when there should be some.")];
  const shown = page.rows.reduce((sum, one) => sum + one.cells.length, 0);
  return [
    bar,
    el("p", { class: "verdict" }, el("span", { class: `level ${page.late ? "bad" : page.gaps ? "late" : "good"}` }, page.late ? "late" : page.gaps ? "gaps" : "whole"), el("b", {}, sentence(page))),
    page.gaps && !page.late_set ? el("p", { class: "quiet" }, "No interval of this pool is ever late: intervals.late is not set.") : null,
    legend(),
    el("ol", { id: "calendar" }, ...page.rows.map((one) => row(one, COLUMNS[page.every]))),
    shown < page.total ? el("p", { class: "quiet" }, `the newest ${count(shown)} of ${count(page.total)}; "${name}:coverage" in SQL has all`) : null,
    page.cut_before ? el("p", { class: "bad" }, `Intervals before ${page.cut_before} are left out, because there are too many: say since when there should be some (intervals.since).`) : null,
    ...backfillsPart(page, offered, name.split(".$")[0]),
  ].filter(Boolean);
}
