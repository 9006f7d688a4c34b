// Transactions over several pools: which are open, what they hold, since when and until when.

import { ago, count, el, moment, read } from "./dom.js";

const time = (text, now) => text === null ? el("td", {}) : el("td", { title: moment(Date.parse(text) / 1000) }, ago(Date.parse(text) / 1000, now));

// An open one past its time, or one that is being committed without a sign of life, waits for a person or an agent.
function late(one, now) {
  const since = (text) => text === null ? 0 : now - Date.parse(text) / 1000;
  if (one.state === "open" && since(one.expires) > 0) return "open for longer than it may";
  if (one.state === "committing" && since(one.renewed) > 300) return `its commit died; lake commit ${one.id}`;
  return "";
}

function line(one, now, go) {
  const why = late(one, now);
  const pools = one.pools.flatMap((pool, at) => [at ? ", " : "", el("button", { type: "button", click: () => go("pool", pool) }, pool)]);
  return el(
    "tr", {},
    time(one.begun, now),
    el("td", { class: why ? "bad" : null, title: why }, one.state),
    el("td", {}, ...pools),
    el("td", {}, one.author ?? ""),
    el("td", { title: one.expires === null ? null : "it may stay open until then" }, one.expires === null ? "" : moment(Date.parse(one.expires) / 1000)),
    el("td", {}, one.message || one.token),
    el("td", {}, one.id),
  );
}

export async function showTransactions(lake, _, go) {
  const { transactions, now, more } = await read("transactions", { lake });
  const headings = ["Since", "State", "Pools", "Author", "Until", "Message", "Id"];
  return [
    el("div", { class: "bar" }, el("h2", {}, "Transactions over several pools"), el("span", { class: "quiet" }, more ? `the newest ${count(transactions.length)}` : "")),
    transactions.length ? el("div", { class: "wide" }, el(
      "table", { id: "transactions" },
      el("thead", {}, el("tr", {}, ...headings.map((text) => el("th", { scope: "col", class: "plain" }, text)))),
      el("tbody", {}, ...transactions.map((one) => line(one, now, go))),
    )) : el("p", { class: "quiet" }, "None is open, and none has ended in the last hour."),
  ];
}
