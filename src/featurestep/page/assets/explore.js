/* What the browser does by itself: gathers the controls into one query (the link's text), hands it
   to the panels, and keeps sliders, boxes and address in step. */
(function () {
  "use strict";

  const REST = 150; // ms without a move after which a slider rests
  let known = null;
  let current = ""; // the query of the controls as they stand
  let inputs = null; // the controls' values, by id and property
  let restTimer = 0;
  const written = {}; // what this script put into a control itself, by id
  const ahead = {}; // values of controls that Dash is told when they rest, by id and property

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
    Object.keys(ahead).forEach((key) => delete ahead[key]);
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

  /* What a drag need not wait for: Dash's own memory of the controls, the address, and the view
     that simulations and files are of. */
  function rest() {
    for (const [key, value] of Object.entries(ahead)) {
      const dot = key.lastIndexOf(".");
      set(key.slice(0, dot), key.slice(dot + 1), value);
      delete ahead[key];
    }
    history.replaceState(null, "", "?" + current);
    window.dash_clientside.set_props("shown-ask", { data: { q: current, seq: 0 } });
  }

  function offerAll(text) {
    clearTimeout(restTimer);
    restTimer = setTimeout(rest, REST);
    current = text;
    window.featurestep.offer(text);
  }

  /* The page comes drawn as its address asks, but perhaps for the spectrum and for a dark system. */
  function begin(figures) {
    const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
    const given = new URLSearchParams(location.search).has("theme");
    current = dark && !given ? apply(known.start, "dark") : known.start;
    dress(new URLSearchParams(current));
    window.featurestep.begin(known, figures);
    window.featurestep.offer(current);
  }

  /* What a person does to a slider or its box by way of Dash is newer than what waits for it. */
  function forget(key, value) {
    const control = key.slice(0, key.lastIndexOf("."));
    if (!/^(slide|box)-/.test(control) || written[control] === String(value)) return;
    const name = control.slice(control.indexOf("-") + 1);
    delete ahead[`slide-${name}.value`];
    delete ahead[`box-${name}.value`];
  }

  function collect() {
    const context = window.dash_clientside.callback_context;
    const first = known === null;
    context.triggered.forEach((item) => forget(item.prop_id, context.inputs[item.prop_id]));
    inputs = { ...context.inputs, ...ahead };
    const states = context.states;
    known = states["known.data"];
    if (first) begin(states["first.data"]);
    else follow(context.triggered.map((item) => item.prop_id));
    return window.dash_clientside.no_update;
  }

  /* A slider's own event: its question leaves at once, and Dash, whose rounds through all controls
     take longer than the answer, does not hear of it before the slider rests. */
  function hurry(event) {
    const id = event.target.id || "";
    if (known === null || !id.startsWith("slide-") || written[id] === event.target.value) return;
    event.stopPropagation();
    const name = id.slice("slide-".length);
    const text = valueAt(name, Number(event.target.value));
    Object.assign(ahead, { [`${id}.value`]: Number(event.target.value), [`box-${name}.value`]: text });
    Object.assign(inputs, ahead);
    document.getElementById(`box-${name}`).value = text;
    event.target.setAttribute("aria-valuetext", text);
    offerAll(readings(inputs).toString());
  }

  function follow(changed) {
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

  /* A simulation has finished: the same question has a new answer. */
  function overlay(finished) {
    if (finished) window.featurestep.again(current);
    return window.dash_clientside.no_update;
  }

  function watch(job) {
    const tell = () => { document.documentElement.dataset.job = job ? "yes" : "no"; };
    requestAnimationFrame(() => setTimeout(tell, 0)); // when React has written the text beside it
    return window.dash_clientside.no_update;
  }

  function press() {
    for (const control of triggers()) {
      if (control.startsWith("save-")) window.featurestep.save(control.slice("save-".length));
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

  document.addEventListener("input", hurry, true);

  /* Before anything is drawn: the theme, so that a dark page does not flash. */
  const given = new URLSearchParams(location.search).get("theme");
  const dark = given ? given === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";

  window.dash_clientside = Object.assign({}, window.dash_clientside, {
    explore: { collect: collect, overlay: overlay, watch: watch, press: press },
  });
})();
