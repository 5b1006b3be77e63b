/* What the browser does by itself: gathers the controls into one query (the link's text), asks
   for it when the last question is answered, and keeps sliders, boxes and address in step. */
(function () {
  "use strict";

  const WAIT = { main: 15000, spectrum: 30000 }; // ms after which an answer is given up
  const LATE = 400; // ms after which a panel that waits is dimmed
  const PANELS = ["spectrum", "errors", "learned", "degrees"];
  /* Two lanes: what follows a slider at once, and the spectrum behind it. Each has one question
     under way at most; of those that come meanwhile only the latest is asked. */
  const lanes = { main: lane("main"), spectrum: lane("spectrum") };
  let known = null;
  let current = ""; // the query of the controls as they stand
  let addressTimer = 0;
  const written = {}; // what this script put into a control itself, by id

  const set = (id, property, value) => {
    written[id] = String(value);
    window.dash_clientside.set_props(id, { [property]: value });
  };

  const short = (value, digits) => String(Number(Number(value).toPrecision(digits)));

  function position(name, value) {
    const limits = known.numbers[name];
    if (!limits.log) return value;
    return value > 0 ? Math.log10(value) : Math.log10(limits.low) - 1;
  }

  function valueAt(name, at) {
    const limits = known.numbers[name];
    if (!limits.log) return short(at, 6);
    if (limits.zero && at < Math.log10(limits.low) - 1e-9) return "0";
    const value = Math.min(limits.high, Math.max(limits.low, 10 ** at));
    return short(value, 3);
  }

  function readings(inputs) {
    const query = new URLSearchParams();
    for (const name of known.fields) {
      let value;
      if (name === "theme") value = inputs["theme.data"];
      else if (name in known.numbers) value = inputs[`box-${name}.value`];
      else value = inputs[`pick-${name}.value`];
      if (known.switches.includes(name)) value = (value || []).length ? "on" : "off";
      query.set(name, value === null || value === undefined ? "" : String(value).trim());
    }
    return query;
  }

  /* Put a query's fields into the controls; what it leaves out keeps the start's value. */
  function apply(text, theme) {
    const query = new URLSearchParams(known.start);
    new URLSearchParams(text).forEach((value, name) => query.set(name, value));
    if (theme) query.set("theme", theme);
    for (const name of known.fields) {
      const value = query.get(name);
      if (name === "theme") set("theme", "data", value === "dark" ? "dark" : "light");
      else if (name in known.numbers) {
        set(`box-${name}`, "value", value);
        slide(name, value);
      } else if (known.switches.includes(name)) set(`pick-${name}`, "value", value === "on" ? ["on"] : []);
      else set(`pick-${name}`, "value", value);
    }
    dress(query);
    return query.toString();
  }

  function slide(name, text) {
    const at = position(name, Number(text));
    if (text !== "" && Number.isFinite(at)) set(`slide-${name}`, "value", at);
  }

  /* The page's look: its theme, and which rows belong to the modes chosen. */
  function dress(query) {
    const root = document.documentElement;
    root.dataset.theme = query.get("theme") === "dark" ? "dark" : "light";
    root.dataset.step = query.get("step");
    root.dataset.target = query.get("target");
    const button = document.getElementById("toggle-theme");
    if (button) button.textContent = root.dataset.theme === "dark" ? "Light" : "Dark";
    for (const name of Object.keys(known.numbers)) {
      const slider = document.getElementById(`slide-${name}`);
      if (!slider) continue;
      slider.setAttribute("aria-label", known.labels[name]);
      slider.setAttribute("aria-valuetext", query.get(name));
    }
    for (const name of ["activation", "readout", "over"]) {
      const picker = document.getElementById(`pick-${name}`);
      if (picker && !picker.getAttribute("aria-label")) picker.setAttribute("aria-label", name);
    }
  }

  function keepAddress(text) {
    clearTimeout(addressTimer);
    addressTimer = setTimeout(() => history.replaceState(null, "", "?" + text), 150);
  }

  function lane(name) {
    return { name: name, seq: 0, busy: 0, asked: "", pending: null, timer: 0, dimmer: 0 };
  }

  function show(line, state) {
    document.documentElement.dataset[line.name] = state;
  }

  function dim(line, late) {
    document.documentElement.dataset[`${line.name}Late`] = late ? "yes" : "no";
  }

  function ask(line, text) {
    line.seq += 1;
    line.busy = line.seq;
    line.asked = text;
    line.pending = null;
    clearTimeout(line.timer);
    line.timer = setTimeout(() => lost(line), WAIT[line.name]);
    show(line, "busy");
    clearTimeout(line.dimmer);
    line.dimmer = setTimeout(() => dim(line, line.busy !== 0), LATE);
    window.dash_clientside.set_props(`${line.name}-ask`, { data: { q: text, seq: line.seq } });
  }

  /* Ask now, or remember as the latest when a question is under way. */
  function offer(line, text, again) {
    if (line.busy) {
      if (again) line.asked = "";
      line.pending = text;
    } else if (text !== line.asked || again) ask(line, text);
  }

  function next(line) {
    const text = line.pending;
    line.pending = null;
    if (text !== null && text !== line.asked) ask(line, text);
    else {
      show(line, "idle");
      dim(line, false);
    }
  }

  function lost(line) {
    line.busy = 0;
    write({ message: "the server does not answer; is `featurestep explore` still running?" });
    next(line);
  }

  function offerAll(text) {
    keepAddress(text);
    current = text;
    offer(lanes.main, text, false);
    offer(lanes.spectrum, text, false);
  }

  /* The page comes drawn as its address asks, but perhaps for the spectrum and for a dark system. */
  function begin() {
    const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
    const given = new URLSearchParams(location.search).has("theme");
    document.documentElement.dataset.answered = "0";
    current = dark && !given ? apply(known.start, "dark") : known.start;
    lanes.main.asked = known.start;
    if (known.drawn) {
      lanes.spectrum.asked = known.start;
      show(lanes.spectrum, "idle");
    }
    dress(new URLSearchParams(current));
    offer(lanes.main, current, false);
    offer(lanes.spectrum, current, false);
  }

  function collect() {
    const context = window.dash_clientside.callback_context;
    const none = window.dash_clientside.no_update;
    const first = known === null;
    known = arguments[arguments.length - 1];
    if (first) begin();
    else follow(context.inputs, context.triggered.map((item) => item.prop_id));
    return none;
  }

  function follow(inputs, changed) {
    const preset = changed.find((id) => id.startsWith("preset-"));
    if (preset) {
      const name = preset.slice("preset-".length, preset.indexOf("."));
      offerAll(apply(known.presets[name], inputs["theme.data"]));
      return;
    }
    let own = true;
    for (const id of changed) {
      const control = id.slice(0, id.lastIndexOf("."));
      const value = inputs[id];
      if (written[control] === String(value)) continue;
      own = false;
      delete written[control];
      if (control.startsWith("slide-")) {
        const name = control.slice(6);
        const text = valueAt(name, Number(value));
        inputs[`box-${name}.value`] = text;
        set(`box-${name}`, "value", text);
      } else if (control.startsWith("box-")) slide(control.slice(4), value);
      else if (control === "toggle-theme") {
        inputs["theme.data"] = inputs["theme.data"] === "dark" ? "light" : "dark";
        set("theme", "data", inputs["theme.data"]);
      }
    }
    if (own) return; // what this script did itself it has asked for already
    const query = readings(inputs);
    dress(query);
    offerAll(query.toString());
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

  function settle(answer) {
    const line = lanes[triggers()[0].split("-")[0]];
    if (answer && answer.seq === line.busy) {
      if (line.name === "main" || !answer.refused) write(answer.texts);
      line.busy = 0;
      clearTimeout(line.timer);
      if (line.name === "main") {
        document.documentElement.dataset.answered = String(answer.seq);
        document.documentElement.dataset.refused = answer.refused ? "yes" : "no";
      }
      next(line);
    }
    return window.dash_clientside.no_update;
  }

  /* A simulation has finished: the same question has a new answer. */
  function overlay(finished) {
    if (finished) offer(lanes.main, current, true);
    return window.dash_clientside.no_update;
  }

  function watch(job) {
    document.documentElement.dataset.job = job ? "yes" : "no";
    return window.dash_clientside.no_update;
  }

  function press() {
    for (const control of triggers()) {
      if (control.startsWith("save-")) saveFigures(control.slice("save-".length));
      if (control === "copy-link") copy(control, location.href.split("?")[0] + "?" + current);
      if (control === "copy-python" || control === "copy-shell") {
        copy(control, document.getElementById(control.slice("copy-".length)).textContent);
      }
    }
    return window.dash_clientside.no_update;
  }

  /* The ids of what has called. */
  function triggers() {
    const items = window.dash_clientside.callback_context.triggered;
    return items.map((item) => item.prop_id.slice(0, item.prop_id.lastIndexOf(".")));
  }

  function saveFigures(format) {
    for (const name of PANELS) {
      const graph = document.querySelector(`#graph-${name} .js-plotly-plot`);
      if (!graph) continue;
      const size = { width: graph.offsetWidth, height: graph.offsetHeight };
      window.Plotly.downloadImage(graph, { format: format, filename: `featurestep-${name}`, scale: 2, ...size });
    }
  }

  async function copy(id, text) {
    const button = document.getElementById(id);
    const name = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch (error) {
      button.textContent = "Press Ctrl-C";
      const range = document.createRange();
      const source = document.getElementById(id.slice(5));
      if (source) {
        range.selectNodeContents(source);
        getSelection().removeAllRanges();
        getSelection().addRange(range);
      }
    }
    setTimeout(() => { button.textContent = name; }, 1500);
  }

  /* Before anything is drawn: the theme, so that a dark page does not flash. */
  const given = new URLSearchParams(location.search).get("theme");
  const dark = given ? given === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";

  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    explore: { collect: collect, settle: settle, overlay: overlay, watch: watch, press: press },
  });
})();
