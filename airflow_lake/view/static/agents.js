// Buttons that start agents: the page asks Airflow's own API for a run, as its user.  The server of the view has no
// part in it.

import { $, airflow, el, note, read } from "./dom.js";

const POLL_SECONDS = 2;
const MAX_POLLS = 300;

let turn = 0;

export async function showAgents(place, lake, pool) {
  const mine = ++turn;
  try {
    const [agents, { dags }] = await Promise.all([read("agents"), airflow("GET", "dags?tags=lake&limit=100")]);
    if (mine !== turn) return;
    const known = new Map(dags.map((dag) => [dag.dag_id, dag]));
    place.replaceChildren(...agents.map((agent) => button(agent, known.get(agent.dag), lake, pool)));
  } catch (error) {
    if (mine === turn) place.replaceChildren(el("span", { class: "quiet" }, `no agents: ${error.message}`));
  }
}

function button(agent, dag, lake, pool) {
  const secret = lake?.run == null ? "the address of this lake may hold a secret: name it by a connection in LAKE_VIEW_LAKES" : "";
  const why = !dag ? `there is no DAG ${agent.dag}` : !agent.may ? `you may not start ${agent.dag}` : secret;
  return el(
    "button",
    { type: "button", disabled: Boolean(why), title: why || `start ${agent.dag}`, click: () => ask(agent, dag, lake, pool) },
    agent.agent,
  );
}

function ask(agent, dag, lake, pool) {
  const dry = el("input", { type: "checkbox", id: "dry" });
  const dialog = $("ask");
  const where = pool ? `the pool ${pool}` : "all pools that have work";
  dialog.replaceChildren(
    el("h2", {}, `Start ${agent.dag}`),
    el("p", {}, `On ${where}, in the lake ${lake.label}.`),
    dag.is_paused ? el("p", { class: "bad" }, "The DAG is paused: the run waits until it is switched on.") : null,
    el("p", {}, dry, " ", el("label", { for: "dry" }, "Dry run: log the plan, change nothing")),
    el(
      "div",
      { class: "bar" },
      el("button", { type: "button", id: "start", click: () => { dialog.close(); start(agent.dag, lake.run, pool, dry.checked); } }, "Start"),
      el("button", { type: "button", click: () => dialog.close() }, "Cancel"),
    ),
  );
  dialog.showModal();
}

async function start(dag, lake, pool, dryRun) {
  const conf = { lake, pools: pool ? [pool] : [], dry_run: dryRun };
  try {
    const run = await airflow("POST", `dags/${encodeURIComponent(dag)}/dagRuns`, { logical_date: null, conf });
    await follow(dag, run.dag_run_id, run.state);
  } catch (error) {
    note(`${dag}: ${error.message}`, true);
  }
}

async function follow(dag, id, state) {
  for (let poll = 0; poll < MAX_POLLS; poll += 1) {
    const over = state === "success" || state === "failed";
    note(`${dag}: run ${id}: ${state}`, state === "failed");
    if (over) return;
    await new Promise((resolve) => { setTimeout(resolve, POLL_SECONDS * 1000); });
    ({ state } = await airflow("GET", `dags/${encodeURIComponent(dag)}/dagRuns/${encodeURIComponent(id)}`));
  }
  note(`${dag}: run ${id}: still ${state}; Airflow's page of the run says more`);
}
