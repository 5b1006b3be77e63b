/* The panels: asks the server what a query shows, and draws the answer with Plotly. */
(function () {
  "use strict";

  const WAIT = 30000; // ms after which an answer is given up
  const LATE = 400; // ms after which a panel that waits is dimmed
  const REST = 250; // ms after which the controls rest: drafts are then followed by the full answer
  const ENLARGED = 1.6; // of letters and lines on the full screen
  const [LETTER, SAMPLE, ROW] = [5.8, 45, 22]; // pixels of a legend, at size 11
  const SIZES = new Set(["size", "width", "standoff", "ticklen", "l", "r", "t", "b", "xshift", "yshift"]);
  const PAGE = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => (byte % 36).toString(36)).join("");
  const root = document.documentElement;
  const latest = {}; // figures by their panels
  const shares = {}; // traces by panel and lane: a panel may have some of both
  const pinned = {}; // traces to compare with, by their panels
  const waiting = []; // who is told when everything asked for is drawn
  let restTimer = 0;
  let accept = () => {}; // told the query of each answer, and the field of each refusal

  /* Two lanes: the errors, and the spectrum. Each has one question under way at most; of those
     that come meanwhile only the latest is asked. One for a full answer is given up at once. */
  const lanes = Object.fromEntries(["spectrum", "main"].map((name) => [
    name, { name: name, seq: 0, asked: "", pending: null, busy: false, fine: true, call: null, dimmer: 0 },
  ]));
  const every = Object.values(lanes);

  /* For tests and styles: "busy" until what was asked is drawn, and whether it is drawn in full. */
  function show(lane) {
    root.dataset[lane.name] = lane.busy ? "busy" : "idle";
    root.dataset.fine = window.Plotly && every.every((each) => each.fine) ? "yes" : "no";
    if (!every.some((each) => each.busy)) waiting.splice(0).forEach((done) => done());
  }

  async function post(path, body, signal) {
    const headers = { "Content-Type": "application/json" };
    const response = await fetch(path, { method: "POST", headers: headers, body: JSON.stringify(body), signal: signal });
    if (!response.ok) throw new Error(await response.text());
    return response.json();
  }

  async function ask(lane, text, draft) {
    clearTimeout(restTimer);
    if (lane.call) lane.call.abort();
    const call = new AbortController();
    const timer = setTimeout(() => call.abort(), WAIT);
    lane.seq += 1;
    Object.assign(lane, { call: call, asked: text, pending: null, busy: draft, fine: false });
    show(lane);
    clearTimeout(lane.dimmer);
    lane.dimmer = setTimeout(() => { root.dataset[`${lane.name}Late`] = lane.call ? "yes" : "no"; }, LATE);
    const question = { lane: lane.name, q: text, seq: lane.seq, draft: draft, page: PAGE };
    const answer = await post("/answers", question, call.signal).catch(() => null);
    clearTimeout(timer);
    if (lane.call !== call) return; // overtaken
    lane.call = null;
    settle(lane, answer);
  }

  /* Ask now; or remember as the latest when a draft is under way, which will not take long. */
  function offer(lane, text) {
    if (lane.busy) lane.pending = text;
    else if (text !== lane.asked) ask(lane, text, true);
  }

  function settle(lane, answer) {
    if (answer === null) write({ message: "the server does not answer; is `featurestep explore` still running?" });
    else {
      if (lane.name === "main" || !answer.refused) write(answer.texts);
      for (const [id, { data, layout }] of Object.entries(answer.figures)) {
        shares[id] = { ...(shares[id] || { spectrum: [], main: [] }), [lane.name]: data };
        draw(id, { data: Object.values(shares[id]).flat(), layout: layout });
      }
      if (lane.name === "main") accept(lane.asked, answer.refused, answer.field);
    }
    lane.busy = false;
    lane.fine = answer === null || answer.fine;
    if (lane.name === "main") root.dataset.answered = String(lane.seq);
    const text = lane.pending;
    if (text !== null && text !== lane.asked) return ask(lane, text, true);
    show(lane);
    root.dataset[`${lane.name}Late`] = "no";
    clearTimeout(restTimer);
    restTimer = setTimeout(refine, REST);
  }

  /* The controls rest: what is drawn as a draft is asked for in full. */
  function refine() {
    if (every.some((lane) => lane.busy)) return; // its answer comes back here
    for (const lane of every) if (!lane.fine && lane.call === null) ask(lane, lane.asked, false);
  }

  const enlarged = (graph) => document.fullscreenElement && document.fullscreenElement.contains(graph);

  /* Letters and lines times a factor. */
  function scaled(item, by, key) {
    if (Array.isArray(item)) return typeof item[0] === "object" ? item.map((each) => scaled(each, by)) : item;
    if (item && typeof item === "object") {
      return Object.fromEntries(Object.entries(item).map(([name, value]) => [name, scaled(value, by, name)]));
    }
    return typeof item === "number" && SIZES.has(key) ? item * by : item;
  }

  /* A legend below the axes gets the rows that it needs at this width. */
  function fitted(figure, { clientWidth, clientHeight }, by) {
    const { legend, margin, showlegend } = figure.layout;
    if (showlegend === false || legend.y > 0) return figure;
    const names = figure.data.filter((trace) => trace.showlegend !== false).map((trace) => trace.name);
    const needed = by * names.reduce((sum, name) => sum + SAMPLE + LETTER * name.length, 0);
    const room = { x: clientWidth - margin.r, y: clientHeight - margin.t };
    const bottom = margin.b + by * ROW * Math.ceil(needed / room.x);
    const below = { ...legend, x: -margin.l / (room.x - margin.l), y: -margin.b / (room.y - bottom) };
    return { data: figure.data, layout: { ...figure.layout, legend: below, margin: { ...margin, b: bottom } } };
  }

  function draw(id, figure) {
    latest[id] = figure;
    if (!window.Plotly) return; // `drawAll` comes when its script is there
    const graph = document.getElementById(id);
    const by = enlarged(graph) ? ENLARGED : 1;
    const together = { data: [...ghosts(id, figure), ...figure.data], layout: figure.layout };
    const { data, layout } = fitted(by === 1 ? together : scaled(together, by), graph, by);
    const picture = { format: "svg", filename: id.replace("graph", "featurestep") };
    const config = { displaylogo: false, modeBarButtons: [["toImage"]], toImageButtonOptions: picture };
    const size = { width: graph.clientWidth, height: graph.clientHeight };
    window.Plotly.react(graph, data, { ...layout, ...size }, config);
  }

  /* What is pinned, in grey; on a bent axis it is put where that axis now has it. */
  function ghosts(id, figure) {
    const kept = pinned[id];
    if (!kept || kept.revision !== figure.layout.uirevision) return [];
    const axis = figure.layout.meta;
    const colour = figure.layout.xaxis.linecolor;
    return kept.data.map((trace) => ({
      ...trace,
      x: axis ? trace.customdata.map((s) => place(s, axis)) : trace.x,
      line: { ...trace.line, color: colour, width: 1.6 },
      fill: "none",
      opacity: 0.75,
      name: "pinned",
      showlegend: false,
      hoverinfo: "skip",
      hovertemplate: undefined,
    }));
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
      const ask = { lane: lane.name, q: text, seq: 0, draft: false, page: `${PAGE}-pin` };
      const answer = await post("/answers", ask);
      for (const [id, figure] of Object.entries(answer.figures)) {
        const data = figure.data.filter((trace) => trace.meta === "pin");
        if (data.length) pinned[id] = { data: data, revision: figure.layout.uirevision };
      }
    }
    drawAll();
  }

  function drawAll() {
    for (const [id, figure] of Object.entries(latest)) draw(id, figure);
    every.forEach(show);
  }

  /* Texts go into the document as texts, never as markup; a list becomes one item a line. */
  function write(texts) {
    for (const [id, text] of Object.entries(texts)) {
      const element = document.getElementById(id);
      if (!Array.isArray(text)) element.textContent = text;
      else element.replaceChildren(...text.map((line) => Object.assign(document.createElement("li"), { textContent: line })));
    }
    badge();
  }

  /* The caveats in sight: how many there are, and the worst, which its list has in front. */
  function badge() {
    const notes = document.querySelectorAll("#validity li");
    const button = document.getElementById("caveats");
    button.hidden = !notes.length;
    const count = notes.length === 1 ? "1 caveat" : `${notes.length} caveats`;
    if (notes.length) button.textContent = `⚠ ${count}: ${notes[0].textContent}`;
  }

  function save(format) {
    for (const id of window.Plotly ? Object.keys(latest) : []) {
      const graph = document.getElementById(id);
      const size = { width: graph.offsetWidth, height: graph.offsetHeight };
      const filename = id.replace("graph", "featurestep");
      window.Plotly.downloadImage(graph, { format: format, filename: filename, scale: 2, ...size });
    }
  }

  const watcher = new ResizeObserver((entries) => {
    for (const { target } of entries) if (latest[target.id]) draw(target.id, latest[target.id]);
  });
  document.querySelectorAll(".graph > div").forEach((graph) => watcher.observe(graph));
  document.getElementById("plotly").addEventListener("load", drawAll);

  window.featurestep = {
    post: post,
    pin: pin,
    save: save,
    offer: (text) => every.forEach((lane) => offer(lane, text)),
    again: (text) => every.forEach((lane) => ask(lane, text, false)),
    drawn: () => new Promise((done) => { waiting.push(done); every.forEach(show); }),
    onAnswer: (listener) => { accept = listener; },
  };
})();
