/* The controls: gathers them into one query (the link's text), hands it to the panels, and keeps
   sliders, boxes and address in step. */
(function () {
  "use strict";

  const root = document.documentElement;
  const panels = window.featurestep;
  const find = (id) => document.getElementById(id);
  const known = JSON.parse(find("known").textContent);
  const PLAY = { step: 0.005, leap: 3, pause: 40, whole: 10000 }; // of α; ms from one to the next, and in all
  const PIN = find("pin").title;
  const LOOK = 300; // ms from look to look at a simulation
  const MARKED = { target: ["formula", "c1", "c2", "c3", "c4"], d: ["phi"], width: ["psi"], n_step: ["step_ratio"] };
  let current = known.start; // the query of the controls as they stand
  let shown = known.start; // the query last accepted
  let pinned = null;
  let playing = false;
  let job = null;
  let gesture = 0; // how often a hand has changed something: a drag counts once
  let dragged = ""; // the slider under a hand
  let listed = 0; // the gesture that the newest entry of the browser's history shows
  const gestures = new Map(); // by query
  const told = known.told ? find("message").textContent : "";
  let first = ""; // the first query asked

  const short = (value, digits) => String(Number(Number(value).toPrecision(digits)));
  const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

  function position(name, value) {
    const { low, log } = known.numbers[name];
    if (!log) return value;
    return value > 0 ? Math.log10(value) : Math.log10(low) - 1;
  }

  function valueAt(name, at) {
    const { low, high, log } = known.numbers[name];
    if (!log) return short(at, 6);
    if (at < Math.log10(low) - 1e-9) return "0"; // the left end of a slider that has it
    return short(Math.min(high, Math.max(low, 10 ** at)), 3);
  }

  function reading(name) {
    if (name === "theme") return root.dataset.theme;
    if (name in known.numbers) return find(`box-${name}`).value.trim();
    const picker = find(`pick-${name}`);
    if (known.switches.includes(name)) return picker.checked ? "on" : "off";
    if (picker.getAttribute("role") === "radiogroup") return picker.querySelector("input:checked").value;
    return picker.value.trim();
  }

  function put(name, value) {
    if (name === "theme") root.dataset.theme = value;
    else if (name in known.numbers) {
      find(`box-${name}`).value = value;
      slide(name, value);
    } else if (known.switches.includes(name)) find(`pick-${name}`).checked = value === "on";
    else {
      const picker = find(`pick-${name}`);
      if (picker.getAttribute("role") === "radiogroup") picker.querySelector(`input[value="${value}"]`).checked = true;
      else picker.value = value;
    }
  }

  function slide(name, text) {
    const slider = find(`slide-${name}`);
    const at = position(name, Number(text));
    if (text === "" || !Number.isFinite(at)) return;
    if (slider !== document.activeElement || valueAt(name, Number(slider.value)) !== text) slider.value = at;
    slider.setAttribute("aria-valuetext", text);
  }

  /* The page's look: which rows belong to the modes chosen, and the preset on show. */
  function dress() {
    for (const name of ["step", "target", "rows"]) root.dataset[name] = reading(name);
    find("toggle-theme").textContent = root.dataset.theme === "dark" ? "Light" : "Dark";
    const plain = (text) => { const query = new URLSearchParams(text); query.delete("theme"); return query.toString(); };
    for (const [name, query] of Object.entries(known.presets)) {
      const chosen = plain(query) === plain(current);
      find(`caption-${name}`).hidden = !chosen;
      find(`preset-${name}`).setAttribute("aria-pressed", String(chosen));
    }
  }

  function ask() {
    current = new URLSearchParams(known.fields.map((name) => [name, reading(name)])).toString();
    gestures.delete(current);
    gestures.set(current, gesture);
    if (gestures.size > 50) gestures.delete(gestures.keys().next().value);
    panels.offer(current); // before anything else: the server is at work meanwhile
    dress();
  }

  function apply(text) {
    for (const [name, value] of new URLSearchParams(text)) if (name !== "theme") put(name, value);
    ask();
  }

  /* What a hand does is one step of the browser's history; the answers of a drag replace each other in it. */
  function remember(query) {
    const address = `?${query}${pinned === null ? "" : "#pin=" + encodeURIComponent(pinned)}`;
    const mine = gestures.get(query) ?? gesture;
    if (mine === listed) history.replaceState(null, "", address);
    else history.pushState(null, "", address);
    listed = mine;
  }

  function goBack() {
    listed = gesture += 1;
    const text = location.search.slice(1) || known.start;
    const theme = new URLSearchParams(text).get("theme");
    if (theme) put("theme", theme);
    const kept = new URLSearchParams(location.hash.slice(1)).get("pin");
    if (kept !== pinned) pin(kept);
    apply(text);
  }

  function move(name, at) {
    const text = valueAt(name, at);
    find(`box-${name}`).value = text;
    find(`slide-${name}`).setAttribute("aria-valuetext", text);
    ask();
  }

  /* An answer: the address and the sliders follow it; a refusal marks its field and moves nothing. */
  panels.onAnswer((query, refused, field) => {
    document.querySelectorAll(".wrong").forEach((row) => row.classList.remove("wrong"));
    document.querySelectorAll("[aria-invalid]").forEach((box) => box.removeAttribute("aria-invalid"));
    if (refused) {
      for (const name of MARKED[field] || [field]) mark(name);
      return;
    }
    shown = query;
    if (told && query === first) find("message").textContent = told; // of a link that was refused
    if (query === current) {
      for (const [name, value] of new URLSearchParams(query)) if (name in known.numbers) slide(name, value);
    }
    for (const kind of ["csv", "json"]) find(`save-${kind}`).href = `/featurestep.${kind}?${query}`;
    remember(query);
  });

  function mark(name) {
    const row = find(`row-${name}`);
    if (!row) return;
    row.classList.add("wrong");
    row.querySelectorAll("input, select").forEach((box) => box.setAttribute("aria-invalid", "true"));
  }

  async function play() {
    playing = !playing;
    find("play").textContent = playing ? "■ Stop" : "▶ Play α";
    if (!playing) return;
    gesture += 1;
    put("step", "exponent");
    const started = performance.now();
    for (let at = 0; playing; ) {
      find("slide-step_exponent").value = at;
      move("step_exponent", at);
      await Promise.all([panels.drawn(), sleep(PLAY.pause)]);
      if (at >= 0.5) break;
      const due = (0.5 * (performance.now() - started)) / PLAY.whole; // where answers are slow, in larger steps
      const next = Math.round(at / PLAY.step) + 1;
      at = Math.min(0.5, PLAY.step * Math.min(Math.max(next, Math.floor(due / PLAY.step)), next + PLAY.leap));
    }
    if (playing) play();
  }

  async function pin(query) {
    pinned = query;
    find("pin").setAttribute("aria-pressed", String(query !== null));
    find("pin").textContent = query === null ? "Pin" : "Unpin";
    const text = query === null ? "" : `grey: ${differences(query)}`;
    find("pinned").textContent = text;
    find("pinned").title = find("pin").title = text || PIN;
    history.replaceState(null, "", `?${shown}${query === null ? "" : "#pin=" + encodeURIComponent(query)}`);
    await panels.pin(query);
    root.dataset.pinned = query === null ? "no" : "yes";
  }

  /* What a pinned view is called: the fields in which it differs from the first view. */
  function differences(query) {
    const plain = new URLSearchParams(known.presets.moniri2);
    const told = [...new URLSearchParams(query)].filter(([name, value]) => name !== "theme" && plain.get(name) !== value);
    return told.map(([name, value]) => `${name} = ${value}`).slice(0, 4).join(", ") || "the first view";
  }

  async function simulate() {
    job = { name: null, left: false };
    const mine = job;
    root.dataset.job = "yes";
    tell({ share: 0, text: "training …" });
    try {
      let told = await panels.post("/simulation", { action: "start", q: shown });
      while (told.job !== null) {
        tell(told);
        await sleep(LOOK);
        told = await panels.post("/simulation", { action: mine.left ? "cancel" : "look", job: told.job });
      }
      tell(told);
      if (told.done) panels.again(current);
    } catch (error) {
      tell({ share: 0, text: "the server does not answer" });
    }
    root.dataset.job = "no";
  }

  function tell({ share, text }) {
    find("progress").value = share;
    find("simulation").textContent = find("simulation").title = text;
  }

  async function copy(id, text) {
    const button = find(id);
    const name = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch (error) {
      button.textContent = "Press Ctrl-C";
      const source = find(id.slice("copy-".length));
      if (source) getSelection().selectAllChildren(source);
    }
    setTimeout(() => { button.textContent = name; }, 1500);
  }

  const presses = {
    play: play,
    simulate: simulate,
    cancel: () => { job.left = true; },
    pin: () => pin(pinned === null ? shown : null),
    caveats: () => { find("validity").open = true; find("validity").scrollIntoView({ block: "center" }); },
    "copy-link": () => copy("copy-link", location.href),
    "copy-python": () => copy("copy-python", find("python").textContent),
    "copy-shell": () => copy("copy-shell", find("shell").textContent),
    "save-svg": () => panels.save("svg"),
    "save-png": () => panels.save("png"),
    "toggle-theme": () => { gesture += 1; put("theme", root.dataset.theme === "dark" ? "light" : "dark"); ask(); },
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.id in presses) presses[button.id]();
    else if (button.id.startsWith("preset-")) {
      gesture += 1;
      apply(known.presets[button.id.slice("preset-".length)]);
    }
    else if (document.fullscreenElement) document.exitFullscreen();
    else if (button.dataset.panel) find(`panel-${button.dataset.panel}`).requestFullscreen();
  });
  document.addEventListener("input", ({ target }) => {
    if (!target.id.startsWith("slide-")) return;
    if (playing) play();
    if (dragged !== target.id) gesture += 1;
    dragged = target.id;
    move(target.id.slice("slide-".length), Number(target.value));
  });
  document.addEventListener("change", ({ target }) => {
    dragged = "";
    if (target.id.startsWith("slide-")) return;
    gesture += 1;
    ask();
  });
  window.addEventListener("popstate", goBack);

  for (const name of Object.keys(known.numbers)) slide(name, reading(name));
  ask();
  first = current;
  const link = new URLSearchParams(location.hash.slice(1)).get("pin");
  if (link) pin(link);
})();
