// The history as a graph: a transaction a line, a lane a branch; details on request.

import { count, el, moment, note, read, runLink, svg } from "./dom.js";

const LINE = 30;
const LANE = 16;
const MAX_LANES = 12;

const laneClass = (lane) => (lane === undefined ? "lane-none" : `lane-${lane % 6}`);

function line(node, lanes, tags, left) {
  const lane = lanes.get(node.branch);
  const actions = Object.entries(node.actions).map(([kind, times]) => `${kind.replaceAll("_", " ")} ×${count(times)}`).join(", ");
  const tips = lane?.live && lane.tip === node.version ? [lane.name] : [];
  const labels = tags.filter((tag) => tag.version === node.version && (tag.branch === node.branch || !node.branch));
  const details = [
    ["transaction", node.id], ["branch", node.branch || "none"], ["time", moment(node.time)], ["author", node.author],
    ["message", node.message], ["did", node.says], ["actions", actions], ["Airflow", runLink(node.metadata)], ...Object.entries(node.metadata),
  ];
  const item = el(
    "details", {},
    el(
      "summary", {},
      el("span", { class: "quiet" }, count(node.version)),
      ...tips.map((name) => el("span", { class: `badge ${laneClass(lane.lane)}` }, name)),
      ...labels.map((tag) => el("span", { class: "badge lane-none" }, `${tag.deleted ? "deleted " : "tag "}${tag.name}`)),
      el("b", {}, node.says || actions),
      node.message ? el("span", { class: "message" }, node.message) : null,
      el("span", { class: "quiet when" }, `${node.author} · ${moment(node.time)}`),
    ),
    el("dl", {}, ...details.filter(([, value]) => value).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])),
  );
  const row = el("li", {}, item);
  row.style.paddingLeft = `${left}px`;
  return row;
}

/** The lines between transactions, at the heights that their rows have now. */
function picture(graph, lanes, rows, width) {
  const heights = rows.map((row) => row.offsetTop + LINE / 2);
  const bottom = rows.length ? rows.at(-1).offsetTop + rows.at(-1).offsetHeight : 0;
  const place = svg("svg", { width, height: bottom, "aria-hidden": "true" });
  const x = (lane) => (Math.min(lane, MAX_LANES) + 0.5) * LANE;
  const of = (branch) => lanes.get(branch)?.lane ?? Math.min(lanes.size, MAX_LANES);
  graph.nodes.forEach((node, index) => {
    const [fromX, fromY] = [x(of(node.branch)), heights[index]];
    for (const link of node.links) {
      const to = graph.nodes.findIndex((other) => other.branch === link.branch && other.version <= link.version);
      const [toX, toY] = [x(of(link.branch)), to < 0 ? bottom : heights[to]];
      const bend = fromX === toX ? "" : ` C ${fromX} ${fromY + LINE}, ${toX} ${fromY}, ${toX} ${fromY + LINE}`;
      const path = svg("path", { d: `M ${fromX} ${fromY}${bend} L ${toX} ${toY}` });
      path.setAttribute("class", `${laneClass(lanes.get(link.how === "parent" ? node.branch : link.branch)?.lane)} ${link.how}`);
      place.append(path);
    }
  });
  graph.nodes.forEach((node, index) => {
    const dot = svg("circle", { cx: x(of(node.branch)), cy: heights[index], r: 4.5 });
    dot.setAttribute("class", laneClass(lanes.get(node.branch)?.lane));
    place.append(dot);
  });
  return place;
}

export async function showLog(lake, name, go, at) {
  const base = name.split(".$")[0];
  const list = el("ol");
  const frame = el("div", { class: "log", id: "log" }, list);
  const more = el("button", { type: "button", click: () => load().catch((error) => note(error.message, true)) }, "Older");
  const said = el("span", { class: "quiet" });
  let graph = null;
  const until = at.version; // a link leads to a version: it is the first line, and open

  async function load() {
    const next = await read("log", { lake, pool: base, until: graph === null ? until : graph.oldest - 1 });
    graph = graph === null ? next : { ...next, nodes: [...graph.nodes, ...next.nodes], lanes: merged(graph.lanes, next.lanes) };
    fill();
  }

  function fill() {
    const lanes = new Map(graph.lanes.map((lane) => [lane.name, lane]));
    const width = (Math.min(graph.lanes.length, MAX_LANES) + 1.5) * LANE;
    const rows = graph.nodes.map((node) => line(node, lanes, graph.tags, width));
    const linked = graph.nodes.findIndex((node) => node.version === until && node.branch === at.branch);
    if (linked >= 0) rows[linked].firstChild.open = true;
    list.replaceChildren(...rows);
    const redraw = () => {
      if (!frame.isConnected) return;
      frame.querySelector("svg")?.remove();
      frame.prepend(picture(graph, lanes, rows, width));
    };
    rows.forEach((row) => row.firstChild.addEventListener("toggle", redraw));
    requestAnimationFrame(redraw);
    more.hidden = graph.oldest <= graph.first;
    said.textContent = graph.first > 1 ? `entries before version ${count(graph.first)} are purged` : "";
  }

  await load();
  return [
    el(
      "div", { class: "bar" }, el("h2", {}, base), el("span", { class: "quiet" }, `version ${count(graph.newest)}`),
      ...(until === null ? [] : [el("button", { type: "button", click: () => go("log", base) }, "Newest")]),
    ),
    graph.nodes.length ? frame : el("p", { class: "quiet" }, "No transactions yet."),
    el("div", { class: "bar" }, more, said),
  ];
}

/** Lanes of both answers: a deleted branch may show up further back. */
function merged(lanes, others) {
  const names = new Set(lanes.map((lane) => lane.name));
  const added = others.filter((lane) => !names.has(lane.name));
  return [...lanes, ...added.map((lane, index) => ({ ...lane, lane: lanes.length + index }))];
}
