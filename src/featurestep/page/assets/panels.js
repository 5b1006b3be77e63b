/* The panels: asks the server for what a query shows, and draws the answer. */
(function () {
  "use strict";

  const WAIT = 30000; // ms after which an answer is given up
  const LATE = 400; // ms after which a panel that waits is dimmed
  const REST = 250; // ms after which the controls rest: drafts are then followed by the full answer
  const CALM = 300; // ms for a person to see the first picture before Plotly takes the browser's time
  const PANELS = ["errors", "spectrum", "learned", "degrees"];
  const PAGE = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => (byte % 36).toString(36)).join("");
  /* Two lanes: the errors, and the spectrum. Each has one question under way at most; of those
     that come meanwhile only the latest is asked. One for a full answer is given up at once. */
  const lanes = { main: lane("main"), spectrum: lane("spectrum") };
  const latest = {}; // figures by their panels
  let path = ""; // of the server's callbacks
  let plotly = ""; // of its script
  let plotted = false; // whether Plotly has drawn every panel
  let restTimer = 0;

  function lane(name) {
    return { name: name, seq: 0, asked: "", pending: null, busy: false, fine: true, call: null, dimmer: 0 };
  }

  /* For tests and styles: "busy" until what was asked is drawn, and whether it is drawn in full. */
  function show(line) {
    const root = document.documentElement.dataset;
    root[line.name] = line.busy ? "busy" : "idle";
    root.fine = plotted && Object.values(lanes).every((each) => each.fine) ? "yes" : "no";
  }

  function dim(line, late) {
    document.documentElement.dataset[`${line.name}Late`] = late ? "yes" : "no";
  }

  async function fetched(line, body, signal) {
    const answer = `${line.name}-answer`;
    const question = { id: `${line.name}-ask`, property: "data", value: body };
    const response = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      signal: signal,
      body: JSON.stringify({
        output: `${answer}.data`,
        outputs: { id: answer, property: "data" },
        inputs: [question],
        changedPropIds: [`${line.name}-ask.data`],
        state: [],
      }),
    });
    if (!response.ok) throw new Error(await response.text());
    return (await response.json()).response[answer].data;
  }

  async function ask(line, text, draft) {
    clearTimeout(restTimer);
    if (line.call) line.call.abort();
    const call = new AbortController();
    const timer = setTimeout(() => call.abort(), WAIT);
    line.seq += 1;
    Object.assign(line, { call: call, asked: text, pending: null, busy: draft, fine: false });
    show(line);
    clearTimeout(line.dimmer);
    line.dimmer = setTimeout(() => dim(line, line.call !== null), LATE);
    let answer = null;
    try {
      answer = await fetched(line, { q: text, seq: line.seq, draft: draft, page: PAGE }, call.signal);
    } catch (error) {
      if (line.call !== call) return; // overtaken
    }
    clearTimeout(timer);
    if (line.call !== call) return;
    line.call = null;
    settle(line, answer);
  }

  /* Ask now; or remember as the latest when a draft is under way, which will not take long. */
  function offer(line, text) {
    if (line.busy) line.pending = text;
    else if (text !== line.asked) ask(line, text, true);
  }

  function settle(line, answer) {
    const root = document.documentElement.dataset;
    if (answer === null) write({ message: "the server does not answer; is `featurestep explore` still running?" });
    else {
      if (line.name === "main" || !answer.refused) write(answer.texts);
      for (const [name, figure] of Object.entries(answer.figures)) draw(name, figure, answer.fine);
      if (line.name === "main") root.refused = answer.refused ? "yes" : "no";
    }
    line.busy = false;
    line.fine = answer === null || answer.fine;
    if (line.name === "main") root.answered = String(line.seq);
    const text = line.pending;
    if (text !== null && text !== line.asked) return ask(line, text, true);
    show(line);
    dim(line, false);
    clearTimeout(restTimer);
    restTimer = setTimeout(refine, REST);
  }

  /* The controls rest: what is drawn as a draft is asked for in full. */
  function refine() {
    const all = Object.values(lanes);
    if (all.some((line) => line.busy)) return; // its answer comes back here
    for (const line of all) if (!line.fine && line.call === null) ask(line, line.asked, false);
  }

  /* The figures are drawn here and not by Dash: React has no part in a curve that moves. While
     Plotly is not there yet, or a control moves, `curves.js` draws them, which is quicker. */
  function draw(id, figure, fine) {
    latest[id] = { figure: figure, fine: fine };
    const graph = document.getElementById(id);
    const finished = fine && window.Plotly !== undefined;
    graph.dataset.drawn = finished ? "plotly" : "curves";
    if (finished) drawFully(id, figure);
    else window.featurestepSketch(graph.querySelector(".sketch"), figure);
  }

  function drawFully(id, figure) {
    const plot = document.querySelector(`#${id} .plot`);
    const picture = { format: "svg", filename: id.replace("graph", "featurestep") };
    const config = { displaylogo: false, modeBarButtons: [["toImage"]], toImageButtonOptions: picture };
    window.Plotly.react(plot, figure.data, figure.layout, config);
  }

  function drawFirst(figures) {
    for (const name of PANELS) draw(`graph-${name}`, figures[`graph-${name}`], true);
    const watcher = new ResizeObserver((entries) => {
      for (const entry of entries) resized(entry.target);
    });
    document.querySelectorAll(".plot").forEach((plot) => watcher.observe(plot));
    setTimeout(loadPlotly, CALM);
  }

  function resized(plot) {
    const graph = plot.parentElement;
    if (graph.dataset.drawn === "plotly") window.Plotly.Plots.resize(plot);
    else window.featurestepSketch(graph.querySelector(".sketch"), latest[graph.id].figure);
  }

  function loadPlotly() {
    const script = document.createElement("script");
    script.src = plotly;
    script.onload = () => drawAgain(Object.keys(latest));
    document.head.append(script);
  }

  /* One panel at a time, so that a hand on a slider need not wait for all of them. */
  function drawAgain(ids) {
    plotted = !ids.length;
    if (plotted) return Object.values(lanes).forEach(show);
    draw(ids[0], latest[ids[0]].figure, latest[ids[0]].fine);
    setTimeout(() => drawAgain(ids.slice(1)), 0);
  }

  /* Texts go into the document as texts, never as markup; a list becomes one item a line. */
  function write(texts) {
    for (const [id, text] of Object.entries(texts)) {
      const element = document.getElementById(id);
      if (!Array.isArray(text)) element.textContent = text;
      else element.replaceChildren(...text.map(item));
    }
  }

  function item(text) {
    const made = document.createElement("li");
    made.textContent = text;
    return made;
  }

  function save(format) {
    if (window.Plotly === undefined) return;
    for (const name of PANELS) {
      drawFully(`graph-${name}`, latest[`graph-${name}`].figure);
      const graph = document.querySelector(`#graph-${name} .plot`);
      const size = { width: graph.offsetWidth, height: graph.offsetHeight };
      window.Plotly.downloadImage(graph, { format: format, filename: `featurestep-${name}`, scale: 2, ...size });
    }
  }

  /* The page comes drawn as its address asks, but perhaps for the spectrum. */
  function begin(known, figures) {
    path = known.path;
    plotly = known.plotly;
    lanes.main.asked = known.start;
    if (known.drawn) lanes.spectrum.asked = known.start;
    drawFirst(figures);
    Object.values(lanes).forEach(show);
    document.documentElement.dataset.answered = "0";
  }

  window.featurestep = {
    begin: begin,
    save: save,
    offer: (text) => [lanes.spectrum, lanes.main].forEach((line) => offer(line, text)),
    again: (text) => ask(lanes.main, text, false),
  };
})();
