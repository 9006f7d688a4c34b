// Buttons that start agents: the page asks Airflow's own API for a run, as its user.  The server of the view has no
// part in it, and one that is not Airflow has no agents.

import { $, airflow, el, host, note, read } from "./dom.js";
import { askAgent, askErasure } from "./ask.js";

const POLL_SECONDS = 2;
const MAX_POLLS = 300;

let turn = 0;

export async function showAgents(place, lake, pool) {
  const mine = ++turn;
  if (host.server !== "airflow") return;
  try {
    const [agents, { dags }] = await Promise.all([read("agents"), airflow("GET", "dags?tags=lake&limit=100")]);
    if (mine !== turn) return;
    const known = new Map(dags.map((dag) => [dag.dag_id, dag]));
    // an erasure is of one pool
    place.replaceChildren(...agents.filter((agent) => pool || !agent.form).map((agent) => button(agent, known.get(agent.dag), lake, pool)));
  } catch (error) {
    if (mine === turn) place.replaceChildren(el("span", { class: "quiet" }, `no agents: ${error.message}`));
  }
}

function button(agent, dag, lake, pool) {
  const secret = lake?.run == null ? "the address of this lake may hold a secret: name it by a connection in LAKE_VIEW_LAKES" : "";
  const why = !dag ? `there is no DAG ${agent.dag}` : !agent.may ? `you may not start ${agent.dag}` : secret;
  const ask = agent.form ? askErasure : askAgent;
  const begin = (conf) => start(agent.dag, { lake: lake.run, pools: pool ? [pool] : [], ...conf });
  return el(
    "button",
    { type: "button", disabled: Boolean(why), title: why || `start ${agent.dag}`, click: () => ask({ agent, dag, lake, pool, begin }) },
    agent.form ? `${agent.agent}…` : agent.agent,
  );
}

async function start(dag, conf) {
  try {
    const run = await airflow("POST", `dags/${encodeURIComponent(dag)}/dagRuns`, { logical_date: null, conf });
    await follow(dag, run.dag_run_id, run.state);
  } catch (error) {
    note(`${dag}: ${error.message}`, true);
  }
}

async function follow(dag, id, state) {
  const page = new URL(`../dags/${encodeURIComponent(dag)}/runs/${encodeURIComponent(id)}`, document.baseURI).href;
  for (let poll = 0; poll < MAX_POLLS; poll += 1) {
    const over = state === "success" || state === "failed";
    note(`${dag}: run ${id}: ${state} `, state === "failed");
    $("note").append(el("a", { href: page, target: "_top" }, "its page in Airflow"));
    if (over) return;
    await new Promise((resolve) => { setTimeout(resolve, POLL_SECONDS * 1000); });
    ({ state } = await airflow("GET", `dags/${encodeURIComponent(dag)}/dagRuns/${encodeURIComponent(id)}`));
  }
  note(`${dag}: run ${id}: still ${state}; Airflow's page of the run says more`);
}
