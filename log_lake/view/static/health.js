// Is all well?  The doctor's verdict of the lake, and its findings with the commands that mend them.

import { ago, count, counted, el, moment, read } from "./dom.js";

const LEVELS = { well: "good", attention: "late", ill: "bad", note: "note" };
const level = (word) => el("span", { class: `level ${LEVELS[word]}` }, word);

/** One sentence about all pools. */
function sentence({ verdict, counts }) {
  const all = counts.well + counts.attention + counts.ill;
  if (verdict === "well") return `All is well: ${counted(all, "pool")}.`;
  const parts = [
    counts.ill && `${count(counts.ill)} ${counts.ill === 1 ? "is" : "are"} ill`,
    counts.attention && `${count(counts.attention)} need${counts.attention === 1 ? "s" : ""} attention`,
    counts.well && `${count(counts.well)} ${counts.well === 1 ? "is" : "are"} well`,
  ].filter(Boolean);
  const lake = counts.ill + counts.attention ? "" : "The lake itself needs a look. ";
  return `${lake}Of ${counted(all, "pool")}, ${parts.join(", ")}.`;
}

const headline = (health, more) => el("p", { class: "verdict" }, level(health.verdict), el("b", {}, sentence(health)), more);

function finding(one, now, go) {
  const since = one.since === null ? null : el("span", { class: "quiet", title: moment(one.since) }, `since ${ago(one.since, now)}`);
  const pool = one.pool ? el("button", { type: "button", class: "link", click: () => go("pool", one.pool) }, one.pool) : el("span", {}, "the lake");
  return el(
    "li",
    {},
    el("p", {}, level(one.severity), pool, el("span", { class: "quiet" }, one.kind), since),
    el("p", {}, one.says),
    one.command ? el("pre", {}, one.command) : null,
  );
}

/** The page of the whole lake. */
export async function showHealth(lake, _, go) {
  const health = await read("health", { lake });
  const left = health.total - health.findings.length;
  return [
    headline(health, el("span", { class: "quiet" }, `seen ${ago(health.now, Date.now() / 1000) || "now"}`)),
    health.findings.length ? el("ol", { id: "findings" }, ...health.findings.map((one) => finding(one, health.now, go))) : el("p", { class: "quiet" }, "No finding. lake doctor says the same, and tries the store's writes too."),
    left ? el("p", { class: "quiet" }, `and ${counted(left, "finding")} more; lake doctor lists all`) : null,
  ].filter(Boolean);
}

/** A line for the page of pools, which fills when the doctor has answered; the table does not wait for it. */
export function healthLine(lake, go) {
  const line = el("div", { id: "verdict", role: "status" }, el("p", { class: "quiet" }, "Is all well? …"));
  read("health", { lake }).then(
    (health) => line.replaceChildren(headline(health, el("button", { type: "button", click: () => go("health") }, "Health"))),
    (error) => line.replaceChildren(el("p", { class: "bad" }, `The doctor could not look: ${error.message || error}`)),
  );
  return line;
}
