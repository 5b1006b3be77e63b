/* The panels: asks the server what a query shows, and draws the answer with Plotly. */
(function () {
  "use strict";

  const WAIT = 30000; // ms after which an answer is given up
  const LATE = 400; // ms after which a panel that waits is dimmed
  const RETRY = 2000; // ms after which a server that did not answer is asked again
  const REST = 250; // ms of rest after which a draft is followed by the full answer
  const BY_HAND = ["plotly_relayout", "plotly_restyle"]; // what Plotly tells of
  const AT_ONCE = { transition: { duration: 0 }, frame: { duration: 0, redraw: false }, mode: "immediate" };
  const SHARED = "graph-degrees"; // a panel of both lanes
  const [LETTER, SAMPLE, ROW] = [5.8, 45, 22]; // pixels of a legend, at size 11
  const PAGE = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => (byte % 36).toString(36)).join("");
  const root = document.documentElement;
  const latest = {}; // figures by their panels
  const shares = {}; // figures by panel and lane: a panel may have traces of both
  const sent = {}; // their texts, by panel and lane: Plotly writes into what it draws
  const looks = {}; // how panels were drawn last, but for what moves
  const sizes = {}; // of panels, so that none need be measured while another is drawn
  const stale = new Set(); // panels that are to be drawn
  const touched = new Set(); // panels that somebody has zoomed, or hidden curves of
  const pinned = {}; // traces to compare with, by their panels
  const waiting = []; // who is told when everything asked for is drawn
  let restTimer = 0;
  let accept = () => {}; // told the query of each answer, and the field of each refusal

  /* Two lanes: the errors, and the spectrum. Each has one question under way at most; of those
     that come meanwhile only the latest is asked. One that a rest has asked is given up at once. */
  const lane = { seq: 0, asked: "", pending: null, busy: false, next: "", call: null, dimmer: 0 };
  const every = ["spectrum", "main"].map((name) => ({ name: name, ...lane }));

  /* For tests and styles: "busy" until what was asked is drawn; whether it is in full. */
  function show(lane) {
    root.dataset[lane.name] = lane.busy ? "busy" : "idle";
    root.dataset.fine = window.Plotly && every.every((each) => !each.next) ? "yes" : "no";
    if (!every.some((each) => each.busy)) waiting.splice(0).forEach((done) => done());
  }

  async function post(path, body, signal) {
    const headers = { "Content-Type": "application/json" };
    const response = await fetch(path, { method: "POST", headers: headers, body: JSON.stringify(body), signal: signal });
    if (!response.ok) throw new Error(await response.text());
    return response.json();
  }

  async function ask(lane, text, how, busy) {
    clearTimeout(restTimer);
    if (lane.call) lane.call.abort();
    const call = new AbortController();
    const timer = setTimeout(() => call.abort(), WAIT);
    lane.seq += 1;
    Object.assign(lane, { call: call, asked: text, pending: null, busy: busy, next: busy ? "full" : how });
    show(lane);
    clearTimeout(lane.dimmer);
    const late = () => { root.dataset[`${lane.name}Late`] = lane.call === call && how !== "full" ? "yes" : "no"; };
    lane.dimmer = setTimeout(late, LATE);
    const question = { lane: lane.name, q: text, seq: lane.seq, how: how, page: PAGE };
    const answer = await post("/answers", question, call.signal).catch(() => null);
    clearTimeout(timer);
    if (lane.call !== call) return; // overtaken
    lane.call = null;
    settle(lane, answer);
  }

  /* Ask now; or remember as the latest when a draft is under way, which will not take long. */
  function offer(lane, text) {
    if (lane.busy) lane.pending = text;
    else if (text !== lane.asked) ask(lane, text, "draft", true);
  }

  async function settle(lane, answer) {
    if (answer === null) {
      write({ message: "the server does not answer; start `featurestep explore` again and this page will reconnect" });
      setTimeout(() => { if (!lane.call && !lane.busy) ask(lane, lane.asked, "draft", true); }, RETRY);
    } else {
      if (lane.name === "main" || !answer.refused) write(answer.texts);
      for (const [id, figure] of Object.entries(answer.figures)) {
        const text = JSON.stringify(figure);
        if (sent[id + lane.name] === text) continue;
        sent[id + lane.name] = text;
        shares[id] = { spectrum: null, main: null, ...shares[id], [lane.name]: figure };
        latest[id] = joined(Object.values(shares[id]).filter(Boolean));
        stale.add(id);
      }
      if (lane.name === "main") accept(lane.asked, answer.refused, answer.field);
      else if (!answer.next && !answer.refused) root.dataset.spectrumEmpty = latest["graph-spectrum"].data.length ? "no" : "yes";
    }
    const awaited = every.some((each) => each.busy && each.call && each.asked === lane.asked); // it draws the share of both
    await Promise.all([...stale].filter((id) => !(awaited && id === SHARED)).map(draw));
    lane.busy = false;
    lane.next = answer === null ? "" : answer.next;
    if (lane.name === "main") root.dataset.answered = String(lane.seq);
    const text = lane.pending;
    if (text !== null && text !== lane.asked) return ask(lane, text, "draft", true);
    show(lane);
    root.dataset[`${lane.name}Late`] = "no";
    rest();
  }

  /* One figure of what the lanes have for it; the main one, which is last, has the axes, or the reason for none. */
  function joined(parts) {
    const { layout } = parts.findLast((part) => part.data.length) || parts.at(-1);
    return { data: parts.flatMap((part) => part.data), layout: layout };
  }

  /* Once the controls rest, what is drawn as a draft is asked for in full. */
  function rest() {
    clearTimeout(restTimer);
    restTimer = setTimeout(() => {
      if (!window.Plotly || every.some((lane) => lane.busy)) return; // who is waited for comes back here
      for (const lane of every) if (lane.next && lane.call === null) ask(lane, lane.asked, "full", false);
    }, REST);
  }

  /* The legend stands below the axes, in the rows that it needs at this width. */
  function fitted(figure, { width, height }) {
    const { legend, margin, showlegend } = figure.layout;
    const names = figure.data.filter((trace) => trace.showlegend !== false).map((trace) => trace.name);
    if (showlegend === false || !names.length) return figure;
    const needed = names.reduce((sum, name) => sum + SAMPLE + LETTER * name.length, 0);
    const room = { x: width - margin.r, y: height - margin.t };
    const bottom = margin.b + ROW * Math.ceil(needed / room.x);
    const below = { ...legend, x: -margin.l / (room.x - margin.l), y: -margin.b / (room.y - bottom) };
    return { data: figure.data, layout: { ...figure.layout, legend: below, margin: { ...margin, b: bottom } } };
  }

  function draw(id) {
    stale.delete(id);
    if (!window.Plotly || !sizes[id]) return; // `drawAll` comes when the script is there, the watcher with a size
    const [graph, figure] = [document.getElementById(id), latest[id]];
    const together = { data: [...ghosts(id, figure), ...figure.data], layout: figure.layout };
    const { data, layout } = fitted(together, sizes[id]);
    const picture = { format: "svg", filename: id.replace("graph", "featurestep") };
    const config = { displaylogo: false, modeBarButtons: [["toImage"]], toImageButtonOptions: picture };
    const whole = { ...layout, ...sizes[id] };
    const before = looks[id];
    looks[id] = JSON.stringify([whole, data.map(({ x, y, text, customdata, hovertemplate, ...look }) => look)]);
    if (looks[id] === before) return moved(graph, data);
    if (graph.data && !touched.has(id)) {
      Object.assign(graph, { data: data, layout: whole });
      return window.Plotly.redraw(graph); // without `react`'s search for what has changed
    }
    const drawn = window.Plotly.react(graph, data, whole, config); // which keeps what a hand has zoomed or hidden
    if (!touched.has(id)) for (const event of BY_HAND) graph.on(event, () => touched.add(id));
    return drawn;
  }

  /* Curves move in a frame that stays, zoomed or not, in half the time. Plotly tells of it a frame too late. */
  function moved(graph, data) {
    const seen = new Promise((done) => {
      const watcher = new MutationObserver(() => { watcher.disconnect(); done(); });
      const curves = graph.querySelector(".cartesianlayer"); // labels of a hover change on their own
      const look = () => watcher.observe(curves, { subtree: true, attributes: true, childList: true });
      graph.once("plotly_animatingframe", look); // one that comes too soon after another waits for its turn
    });
    const asked = window.Plotly.animate(graph, { data: data, traces: data.map((_, rank) => rank) }, AT_ONCE);
    return Promise.race([seen, asked.catch(() => {})]); // one that a later one overtakes is refused
  }

  /* What is pinned, in grey; on a bent axis it is put where that axis now has it. */
  function ghosts(id, figure) {
    const kept = pinned[id];
    if (!kept || kept.revision !== figure.layout.uirevision) return [];
    const axis = figure.layout.meta;
    const line = { color: figure.layout.xaxis.linecolor, width: 1.6 };
    const grey = { name: "pinned", fill: "none", opacity: 0.75, showlegend: false, hoverinfo: "skip", hovertemplate: undefined };
    const across = (trace) => (axis ? trace.customdata.map((s) => place(s, axis)) : trace.x);
    const look = (trace) => (trace.marker ? { mode: "markers", marker: { ...trace.marker, line: line } } : { mode: "lines", line: { ...trace.line, ...line } });
    return kept.data.map((trace) => ({ ...trace, ...grey, x: across(trace), ...look(trace) }));
  }

  function place(s, { bend, right, share }) {
    if (right <= bend) return s / bend;
    if (s <= bend) return (share * s) / bend;
    return share + ((1 - share) * Math.log(s / bend)) / Math.log(right / bend);
  }

  /* Keep the curves of a query, asked for once more: the server remembers them. */
  async function pin(text) {
    for (const id of Object.keys(pinned)) delete pinned[id];
    for (const lane of text === null ? [] : every) {
      const ask = { lane: lane.name, q: text, seq: 0, how: "full", page: `${PAGE}-pin` };
      const answer = await post("/answers", ask);
      for (const [id, figure] of Object.entries(answer.figures)) {
        const data = figure.data.filter((trace) => trace.meta === "pin");
        if (data.length) pinned[id] = { data: data, revision: figure.layout.uirevision };
      }
    }
    drawAll();
  }

  function drawAll() {
    Object.keys(latest).forEach(draw);
    every.forEach(show);
    rest();
  }

  /* Texts go into the document as texts, never as markup; a list is of notes, with their sizes. */
  function write(texts) {
    for (const [id, text] of Object.entries(texts)) {
      const element = document.getElementById(id);
      if (Array.isArray(text)) element.replaceChildren(...text.map(item));
      else element.textContent = text;
      if (element.className === "hint") element.title = text; // it may not fit
    }
    badge();
  }

  function item([text, size]) {
    const line = Object.assign(document.createElement("li"), { textContent: text });
    line.dataset.size = size;
    return line;
  }

  /* The caveats in sight: how many there are, and the one that admits the largest error. */
  function badge() {
    const notes = [...document.querySelectorAll("#validity li")];
    const button = document.getElementById("caveats");
    button.hidden = !notes.length;
    const [worst] = notes.sort((a, b) => b.dataset.size - a.dataset.size);
    const count = notes.length === 1 ? "1 caveat" : `${notes.length} caveats`;
    if (worst) button.textContent = `⚠ ${count}: ${worst.textContent}`;
  }

  function save(format) {
    for (const id of window.Plotly ? Object.keys(latest) : []) {
      const filename = id.replace("graph", "featurestep");
      window.Plotly.downloadImage(id, { format: format, filename: filename, scale: 2, ...sizes[id] });
    }
  }

  const watcher = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries) {
      sizes[target.id] = { width: contentRect.width, height: contentRect.height };
      if (latest[target.id]) draw(target.id);
    }
  });
  document.querySelectorAll(".graph > div").forEach((graph) => watcher.observe(graph));
  document.getElementById("plotly").addEventListener("load", drawAll);

  window.featurestep = {
    post: post,
    pin: pin,
    save: save,
    offer: (text) => every.forEach((lane) => offer(lane, text)),
    again: (text) => every.forEach((lane) => ask(lane, text, "full", false)),
    drawn: () => new Promise((done) => { waiting.push(done); every.forEach(show); }),
    onAnswer: (listener) => { accept = listener; },
  };
})();
