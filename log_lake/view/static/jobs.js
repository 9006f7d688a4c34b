// Jobs of the agents: what was done and gained, what failed or died, what was put off.

import { ago, count, el, moment, read, runLink, size } from "./dom.js";

const isBytes = (name) => name.split("_").includes("size") || name === "freed";
const shown = (name, value) => isBytes(name) ? size(value) : count(value);
const PAIR = /^(.*)_(before|after)$/;

// What it gained, "depth 12 → 1", then what was done; what is 0, or did not change, is left out.
function figuresText(figures) {
  const all = Object.entries(figures);
  const done = all.filter(([name, value]) => value && !PAIR.test(name)).map(([name, value]) => `${name} ${shown(name, value)}`);
  const gained = all.filter(([name, value]) => name.endsWith("_before") && value !== figures[name.replace(PAIR, "$1_after")])
    .map(([name, value]) => [name.replace(PAIR, "$1"), value, figures[name.replace(PAIR, "$1_after")]])
    .map(([name, before, after]) => `${name} ${shown(name, before)} → ${shown(name, after)}`);
  return [...gained, ...done].join(", ");
}

// What it asked of the store; its phases in the title.
function cost(job) {
  if (!job.cost) return el("td", {});
  const { reads, lists, writes, deletes, received, sent, seconds } = job.cost;
  const moved = [[received, "read"], [sent, "written"]].filter(([bytes]) => bytes).map(([bytes, how]) => `${size(bytes)} ${how}`);
  const kinds = Object.entries({ reads, lists, writes, deletes }).filter(([, number]) => number).map(([kind, number]) => `${count(number)} ${kind}`);
  const phases = Object.entries(seconds).map(([phase, took]) => `${phase} ${took.toFixed(2)} s`);
  return el("td", { title: [...kinds, ...phases].join("\n") }, [`${count(reads + lists + writes + deletes)} requests`, ...moved].join(", "));
}

const result = (job) => job.error || job.why || figuresText(job.figures);

function line(job, now, go) {
  const began = Date.parse(job.began) / 1000;
  const bad = job.state === "failed" || job.state === "died";
  const where = job.branch === "main" ? job.pool : `${job.pool}@${job.branch}`;
  return el(
    "tr", {},
    el("td", { title: moment(began) }, ago(began, now)),
    el("td", {}, job.agent),
    el("td", {}, job.pool ? el("button", { type: "button", click: () => go("pool", job.pool) }, where) : "several"),
    el("td", { class: bad ? "bad" : null }, job.state),
    el("td", { class: "number" }, job.seconds === null ? "" : `${job.seconds.toFixed(1)} s`),
    cost(job),
    el("td", { class: bad ? "bad" : null }, result(job)),
    el("td", { title: job.host }, runLink(job.run) ?? ["dag", "run", "task"].map((name) => job.run[name]).filter(Boolean).join(" / ")),
  );
}

export async function showJobs(lake, name, go) {
  const pool = name.split(".$")[0];
  const { jobs, now, more } = await read("jobs", { lake, pool });
  const headings = ["Began", "Agent", "Pool", "State", "Took", "Cost", "Result", "Run"];
  return [
    el("div", { class: "bar" }, el("h2", {}, pool ? `Jobs of ${pool}` : "Jobs"), el("span", { class: "quiet" }, more ? `the newest ${count(jobs.length)}` : "")),
    jobs.length ? el("div", { class: "wide" }, el(
      "table", { id: "jobs" },
      el("thead", {}, el("tr", {}, ...headings.map((text) => el("th", { scope: "col", class: text === "Took" ? "plain number" : "plain" }, text)))),
      el("tbody", {}, ...jobs.map((job) => line(job, now, go))),
    )) : el("p", { class: "quiet" }, "No agent has run yet."),
  ];
}
