// Starts the players of a key. Each kind returns a function that draws a moment and says what it shows.
const startPlayers = (key) => {
  "use strict";

  const frames = (player, { sources, captions, description }) => {
    const image = player.querySelector("img");
    return (time) => {
      image.src = "data:image/png;base64," + sources[time - 1];
      image.alt = description + ": " + captions[time - 1];
      return captions[time - 1];
    };
  };

  const chains = (player, data) => {
    const { names, matrices, labels, target, steps, left, right, bars, curve, decades } = data;
    const [chain, start] = player.querySelectorAll("select");
    const svg = player.querySelector("svg"), rectangles = svg.querySelectorAll(".bars rect");
    const line = svg.querySelector("polyline"), now = svg.querySelector("circle");
    const distance = (p) => p.reduce((sum, value, state) => sum + Math.abs(value - target[state]), 0) / 2;
    const x = (t) => left + (right - left) * t / steps;
    const y = (d) => curve[0] + (curve[1] - curve[0]) * Math.min(decades, -Math.log10(Math.max(d, 1e-300))) / decades;
    const next = (p, matrix) => p.map((_, to) => p.reduce((sum, value, from) => sum + value * matrix[from][to], 0));
    const walk = () => {
      const rows = [labels.map((_, state) => Number(state === Number(start.value)))];
      while (rows.length <= steps) rows.push(next(rows[rows.length - 1], matrices[Number(chain.value)]));
      return rows;
    };
    return (time) => {
      const rows = walk(), d = distance(rows[time]);
      rectangles.forEach((rectangle, state) => {
        const height = (bars[1] - bars[0]) * rows[time][state];
        rectangle.setAttribute("height", height);
        rectangle.setAttribute("y", bars[1] - height);
      });
      line.setAttribute("points", rows.map((row, t) => x(t) + "," + y(distance(row))).join(" "));
      now.setAttribute("cx", x(time));
      now.setAttribute("cy", y(d));
      const caption = names[Number(chain.value)] + ", started in " + labels[Number(start.value)]
        + ", step " + time + ": distance from the target " + d.toFixed(4);
      svg.setAttribute("aria-label", data.description + ": " + caption);
      return caption;
    };
  };

  const traces = (player, { runs, low, high, left, top, width, height }) => {
    const run = player.querySelector(".choice"), rectangles = player.querySelectorAll("rect");
    const line = player.querySelector("polyline"), now = player.querySelector("circle");
    const last = runs[0].bounds.length - 1;
    const x = (t) => left + width * t / last;
    const y = (bound) => top + height * (high - Math.min(Math.max(bound, low), high)) / (high - low);
    return (time) => {
      const { label, means, bounds } = runs[Number(run.value)];
      rectangles.forEach((rectangle, unit) => {
        rectangle.setAttribute("y", top + height * (1 - means[time][unit]));
        rectangle.setAttribute("height", height * means[time][unit]);
      });
      line.setAttribute("points", bounds.slice(0, time + 1).map((bound, t) => x(t) + "," + y(bound)).join(" "));
      now.setAttribute("cx", x(time));
      now.setAttribute("cy", y(bounds[time]));
      run.setAttribute("aria-valuetext", label);
      const fell = time > 0 && bounds[time] < bounds[time - 1] - 1e-3 ? ": it fell" : "";
      return label + ", update " + time + ": bound " + bounds[time].toFixed(2).replace("-", "\u2212") + " nats" + fell;
    };
  };

  const ladders = (player, { rungs, betas, trips, left, right, top, bottom, description }) => {
    const chosen = player.querySelector("select"), svg = player.querySelector("svg"), now = svg.querySelector("rect");
    const line = svg.querySelector("polyline"), circles = svg.querySelectorAll("circle");
    const x = (step) => left + (right - left) * step / (rungs.length - 1);
    const y = (rung) => bottom - (bottom - top) * rung / (betas.length - 1);
    return (time) => {
      const own = Number(chosen.value);
      now.setAttribute("x", x(time) - 1);
      circles.forEach((circle, chain) => {
        circle.setAttribute("cx", x(time));
        circle.setAttribute("cy", y(rungs[time][chain]));
        circle.setAttribute("r", chain === own ? 6 : 4);
        circle.setAttribute("fill", chain === own ? line.getAttribute("stroke") : "#595959");
      });
      line.setAttribute("points", rungs.slice(0, time + 1).map((row, step) => x(step) + "," + y(row[own])).join(" "));
      const caption = "step " + time + ", chain " + (own + 1) + ": beta = " + betas[rungs[time][own]].toFixed(2)
        + ", round trips so far: " + trips[time][own];
      svg.setAttribute("aria-label", description + ": " + caption);
      return caption;
    };
  };

  const particles = (player, { runs, start, target, left, right, top, bottom, radius, growth, description }) => {
    const run = player.querySelector(".choice"), svg = player.querySelector("svg");
    const line = svg.querySelector("polyline"), circles = svg.querySelectorAll("circle");
    const x = (place) => left + (right - left) * place / (start.length - 1);
    return (time) => {
      const { betas, places, weights, captions } = runs[Number(run.value)];
      const logs = start.map((log, place) => log + betas[time] * (target[place] - log)), most = Math.max(...logs);
      const y = (log) => bottom - (bottom - top) * Math.exp(log - most);
      line.setAttribute("points", logs.map((log, place) => x(place) + "," + y(log)).join(" "));
      circles.forEach((circle, particle) => {
        circle.setAttribute("cx", x(places[time][particle]));
        circle.setAttribute("r", radius + growth * Math.sqrt(weights[time][particle]));
      });
      svg.setAttribute("aria-label", description + ": " + captions[time]);
      return captions[time];
    };
  };

  const brackets = (player, { places, errors, captions, description }) => {
    const svg = player.querySelector("svg"), bars = svg.querySelectorAll("path");
    const lines = svg.querySelectorAll("polyline"), markers = svg.querySelectorAll("polygon");
    return (time) => {
      places.forEach((side, number) => {
        bars[number].setAttribute("d", errors[number].slice(0, time + 1).join(""));
        lines[number].setAttribute("points", side.slice(0, time + 1).join(" "));
        markers[number].setAttribute("transform", `translate(${side[time].join(" ")})`);
      });
      svg.setAttribute("aria-label", description + ": " + captions[time]);
      return captions[time];
    };
  };

  for (const player of document.querySelectorAll(`[data-player="${key}"]:not([data-ready])`)) {
    player.dataset.ready = "";
    for (const still of player.querySelectorAll("img.still")) {
      const source = decodeURIComponent(still.src.slice(still.src.indexOf(",") + 1));
      still.replaceWith(new DOMParser().parseFromString(source, "image/svg+xml").documentElement);
    }
    for (const text of player.querySelectorAll("script.controls")) {
      const controls = document.createElement("div");
      controls.className = "controls";
      controls.innerHTML = text.textContent;
      text.replaceWith(controls);
    }
    const data = JSON.parse(player.querySelector('script[type="application/json"]').textContent);
    const draw = { frames, chains, traces, ladders, particles, brackets }[data.kind](player, data);
    const time = player.querySelector(".time"), button = player.querySelector("button"), caption = player.querySelector("p");
    let timer = null, opening = true;
    const show = () => {
      caption.textContent = draw(Number(time.value));
      time.setAttribute("aria-valuetext", caption.textContent.split(": ")[0]);
      opening = false;
    };
    const stop = () => {
      clearInterval(timer);
      timer = null;
      button.textContent = "Play";
      caption.setAttribute("aria-live", "polite");
    };
    const step = () => {
      time.value = Number(time.value) + 1;
      if (time.value === time.max) stop();
      show();
    };
    button.addEventListener("click", () => {
      if (timer !== null) return stop();
      if (opening || time.value === time.max) time.value = time.min;
      button.textContent = "Pause";
      caption.setAttribute("aria-live", "off");  // a voice could not keep up
      show();
      timer = setInterval(step, data.milliseconds);
    });
    time.addEventListener("input", () => { stop(); show(); });
    for (const choice of player.querySelectorAll(".choice")) choice.addEventListener("input", show);
  }
};
