/* Draws a figure's curves at once, as plain SVG: while Plotly is being loaded, and while a control
   moves. It knows what this page's figures have: lines, markers with error bars, bars, tinted
   bands, notes, linear, logarithmic and named axes, a legend. */
(function () {
  "use strict";

  const DASHES = { dot: "2 3", dashdot: "7 3 2 3", dash: "7 4" };
  const SIGNS = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'", "&amp;": "&" };
  const ROW = 29; // pixels of a legend's row
  const SMALL = "₀₁₂₃₄₅₆₇₈₉";

  function make(name, attributes, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return element;
  }

  /* The rows of a text that is meant for Plotly. */
  function rows(text) {
    const plain = String(text)
      .replace(/<sub>(.*?)<\/sub>/g, (_, inner) => inner.replace(/\d/g, (digit) => SMALL[digit]).replace("k", "ₖ"))
      .replace(/<(?!br)[^>]*>/g, "");
    return plain.split("<br>").map((row) => row.replace(/&[^;]{2,5};/g, (sign) => SIGNS[sign] || sign));
  }

  const short = (value) => String(Number(value.toPrecision(3))).replace("-", "−");

  /* Ticks are as far apart as Plotly has them: labels need more room across than upwards. */
  function linear(range, low, high) {
    const [a, b] = range;
    const rough = (b - a) / Math.max(2, Math.abs(high - low) / (high > low ? 70 : 40));
    const scale = 10 ** Math.floor(Math.log10(rough));
    const step = scale * [1, 2, 5, 10].find((each) => each * scale >= rough);
    const ticks = [];
    for (let k = Math.ceil(a / step - 1e-9); k * step <= b * (1 + 1e-12) + 1e-12; k += 1) ticks.push([k * step, short(k * step)]);
    return { at: (value) => low + ((value - a) / (b - a)) * (high - low), ticks: ticks };
  }

  function logarithmic(values, low, high) {
    const logs = values.filter((value) => value > 0).map(Math.log10);
    const [a, b] = [Math.min(...logs) - 0.02, Math.max(...logs) + 0.02];
    const inner = linear([a, b], low, high);
    const ticks = [];
    for (let k = Math.floor(a); k <= b; k += 1) {
      for (const digit of b - a > 3 ? [1] : [1, 2, 5]) ticks.push([digit * 10 ** k, short(digit * 10 ** k)]);
    }
    const inside = ticks.filter(([value]) => Math.log10(value) >= a && Math.log10(value) <= b);
    return { at: (value) => inner.at(Math.log10(value)), ticks: inside };
  }

  function named(names, low, high) {
    const step = (high - low) / Math.max(1, names.length);
    const at = (name) => low + (names.indexOf(name) + 0.5) * step;
    return { at: at, step: step, ticks: names.map((name) => [name, rows(name)[0]]) };
  }

  function xAxis(figure, low, high) {
    const axis = figure.layout.xaxis;
    const values = figure.data.flatMap((trace) => trace.x);
    if (axis.type === "category") return named([...new Set(values)], low, high);
    if (axis.type === "log" && values.length) return logarithmic(values, low, high);
    return linear(axis.range || [0, 1], low, high);
  }

  function yAxis(figure, low, high) {
    const axis = figure.layout.yaxis;
    const found = linear(axis.range || [0, 1], low, high);
    if (axis.tickformat === ".0%") {
      found.ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => [share, `${100 * share}%`]);
    }
    return found;
  }

  function axes(svg, figure, box, x, y) {
    const { xaxis, yaxis, font } = figure.layout;
    const text = { fill: font.color, "font-size": 12 };
    for (const [value, label] of y.ticks) {
      const at = y.at(value);
      svg.append(make("path", { d: `M${box.left} ${at}H${box.right}`, stroke: yaxis.gridcolor }));
      svg.append(make("path", { d: `M${box.left - 4} ${at}h4`, stroke: yaxis.tickcolor }));
      svg.append(make("text", { ...text, x: box.left - 7, y: at + 4, "text-anchor": "end" }, label));
    }
    svg.append(make("path", { d: `M${box.left} ${box.top}V${box.bottom}H${box.right}`, stroke: xaxis.linecolor, fill: "none" }));
    for (const [value, label] of x.ticks) {
      const at = x.at(value);
      svg.append(make("path", { d: `M${at} ${box.bottom}v4`, stroke: xaxis.tickcolor }));
      svg.append(make("text", { ...text, x: at, y: box.bottom + 17, "text-anchor": "middle" }, label));
    }
    const middle = { x: (box.left + box.right) / 2, y: (box.top + box.bottom) / 2 };
    if (xaxis.title) {
      const [title] = rows(xaxis.title.text);
      svg.append(make("text", { ...text, x: middle.x, y: box.bottom + 36, "text-anchor": "middle" }, title));
    }
    if (yaxis.title) {
      const widest = Math.max(...y.ticks.map(([, label]) => label.length));
      const turn = `translate(${box.left - 23 - 6 * widest} ${middle.y}) rotate(-90)`;
      svg.append(make("text", { ...text, transform: turn, "text-anchor": "middle" }, rows(yaxis.title.text)[0]));
    }
  }

  function points(trace, x, y) {
    const places = trace.x.map((value, i) => [value, trace.y[i]]);
    return places.filter(([, value]) => value !== null).map(([a, b]) => [x.at(a).toFixed(1), y.at(b).toFixed(1)]);
  }

  const dashed = (dash) => (dash === "solid" ? "" : DASHES[dash] || dash.replace(/px,?/g, " "));

  function curve(svg, trace, x, y) {
    const places = points(trace, x, y);
    if (!places.length) return;
    const path = "M" + places.map((place) => place.join(" ")).join("L");
    if (trace.fill) {
      const closed = `${path}L${places[places.length - 1][0]} ${y.at(0)}L${places[0][0]} ${y.at(0)}Z`;
      svg.append(make("path", { d: closed, fill: trace.fillcolor }));
    }
    const { color, width, dash } = trace.line;
    const look = { fill: "none", stroke: color, "stroke-width": width, "stroke-dasharray": dashed(dash) };
    svg.append(make("path", { d: path, ...look }));
  }

  function markers(svg, trace, x, y) {
    const { color, size, line, symbol } = trace.marker;
    const look = { fill: color, stroke: line.color, "stroke-width": line.width };
    trace.x.forEach((value, i) => {
      const [a, b] = [x.at(value), y.at(trace.y[i])];
      if (trace.error_y) {
        const [low, high] = [-1, 1].map((sign) => y.at(trace.y[i] + sign * trace.error_y.array[i]));
        svg.append(make("path", { d: `M${a} ${low}V${high}M${a - 4} ${low}h8M${a - 4} ${high}h8`, stroke: trace.error_y.color }));
      }
      if (symbol === "square") svg.append(make("rect", { ...look, x: a - size / 2, y: b - size / 2, width: size, height: size }));
      else svg.append(make("circle", { ...look, cx: a, cy: b, r: size / 2 }));
    });
  }

  function bars(svg, traces, x, y) {
    const group = 0.65 * x.step;
    const width = group / traces.length;
    traces.forEach((trace, index) => {
      trace.x.forEach((name, i) => {
        if (trace.y[i] === null) return;
        const [left, top] = [x.at(name) - group / 2 + index * width, y.at(trace.y[i])];
        const place = { x: left + 0.04 * width, y: top, width: 0.92 * width, height: Math.max(0, y.at(0) - top) };
        svg.append(make("rect", { ...place, fill: trace.marker.color }));
        const size = Math.min(trace.textfont.size, width / (0.75 * Math.max(1, trace.text[i].length)));
        const text = { x: left + width / 2, y: top - 4, "text-anchor": "middle", "font-size": size, fill: trace.textfont.color };
        svg.append(make("text", text, trace.text[i]));
      });
    });
  }

  function notes(svg, figure, box, x, y) {
    for (const shape of figure.layout.shapes || []) {
      const [left, right] = [x.at(shape.x0), x.at(shape.x1)];
      const size = { x: left, y: box.top, width: right - left, height: box.bottom - box.top };
      svg.prepend(make("rect", { ...size, fill: shape.fillcolor }));
    }
    for (const note of figure.layout.annotations || []) {
      const across = note.xref === "paper" ? box.left + note.x * (box.right - box.left) : x.at(note.x);
      const up = note.yref === "paper" ? box.bottom - note.y * (box.bottom - box.top) : y.at(note.y);
      const lines = rows(note.text);
      const anchor = { right: "end", left: "start" }[note.xanchor] || "middle";
      const above = { top: -0.9, middle: lines.length / 2 - 0.8 }[note.yanchor];
      const shift = (above === undefined ? lines.length - 0.7 : above) * 15;
      lines.forEach((line, i) => {
        const look = { x: across, y: up - shift + 15 * i, "text-anchor": anchor };
        svg.append(make("text", { ...look, "font-size": note.font.size, fill: note.font.color }, line));
      });
    }
  }

  function legend(svg, figure, box, height) {
    if (figure.layout.showlegend === false) return;
    const shown = figure.data.filter((trace) => trace.showlegend !== false);
    shown.sort((a, b) => (a.legendrank || 0) - (b.legendrank || 0));
    const { font, yref } = figure.layout.legend;
    const made = make("g", { "font-size": font.size, fill: font.color });
    let [x, y] = [yref === "container" ? 8 : box.left, 0];
    for (const trace of shown) {
      const needed = 44 + 5.6 * trace.name.length;
      if (x + needed > box.right + 14 && y >= 0 && x > box.left) [x, y] = [yref === "container" ? 8 : box.left, y + ROW];
      const colour = trace.line ? trace.line.color : trace.marker.line ? trace.marker.line.color : trace.marker.color;
      const dashes = trace.line ? dashed(trace.line.dash) : "";
      const sample = trace.type === "bar" ? { d: `M${x + 10} ${y}h12`, "stroke-width": 12 } : { d: `M${x + 4} ${y}h24`, "stroke-width": 2 };
      made.append(make("path", { ...sample, stroke: colour, "stroke-dasharray": dashes }));
      made.append(make("text", { x: x + 34, y: y + 4 }, trace.name));
      x += needed;
    }
    const top = yref === "container" ? height - 17 - y : box.top - 12;
    made.setAttribute("transform", `translate(0 ${top})`);
    svg.append(made);
  }

  function sketch(place, figure) {
    const [width, height] = [place.clientWidth, place.clientHeight];
    const { margin, font, xaxis, paper_bgcolor: paper } = figure.layout;
    const box = { left: margin.l, right: width - margin.r, top: margin.t, bottom: height - margin.b };
    const svg = make("svg", { width: width, height: height, "font-family": font.family });
    svg.style.background = paper;
    const x = xAxis(figure, box.left, box.right);
    const y = yAxis(figure, box.bottom, box.top);
    if (xaxis.visible !== false) axes(svg, figure, box, x, y);
    const traces = figure.data;
    bars(svg, traces.filter((trace) => trace.type === "bar"), x, y);
    traces.filter((trace) => trace.mode === "lines").forEach((trace) => curve(svg, trace, x, y));
    traces.filter((trace) => trace.mode === "markers").forEach((trace) => markers(svg, trace, x, y));
    notes(svg, figure, box, x, y);
    legend(svg, figure, box, height);
    place.replaceChildren(svg);
  }

  window.featurestepSketch = sketch;
})();
