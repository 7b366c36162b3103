// Draws the charts of a report's page. Every <figure> holds a canvas and, beside it, a JSON script
// with the numbers (lib/report/page/chart.cc writes them).
"use strict";
(() => {
  // Okabe and Ito's palette, which people who do not see all colours can tell apart; on a dark ground
  // its black and its darkest blue are lighter.
  const palettes = {
    light: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b07c00", "#3d9bd1", "#444444"],
    dark: ["#56b4e9", "#ee8a3c", "#2fc795", "#dd9dc0", "#e6b422", "#8cb9ff", "#c8c8c8"],
  };
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const color = (index) => {
    const palette = dark.matches ? palettes.dark : palettes.light;
    return palette[index % palette.length];
  };
  const faint = (hex) => hex + "28";
  const variable = (name) =>
    getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  const isNumber = (value) => typeof value === "number";
  const shown = (value) => (isNumber(value) ? String(Number(value.toPrecision(6))) : "-");
  const power = (value) => {
    const exponent = Math.round(Math.log2(value));
    return Math.abs(exponent) < 17 && exponent >= 0 ? String(value) : "2^" + exponent;
  };
  const ending = (text, most) => (text.length > most ? "…" + text.slice(1 - most) : text);

  /** A value axis: linear, or logarithmic with ticks at powers of two around `values`. */
  function valueAxis(title, values, powersOfTwo) {
    const axis = {
      type: "linear",
      title: { display: title !== "", text: title, color: variable("--text") },
      grid: { color: variable("--line"), borderColor: variable("--line") },
      ticks: { color: variable("--text"), maxRotation: 0, autoSkipPadding: 12 },
    };
    const positive = values.filter((value) => isNumber(value) && value > 0).map(Math.log2);
    if (!powersOfTwo || positive.length === 0) return axis;
    axis.type = "logarithmic";
    const low = Math.floor(Math.min(...positive)) - 1;
    const high = Math.ceil(Math.max(...positive)) + 1;
    axis.min = 2 ** low;
    axis.max = 2 ** high;
    axis.afterBuildTicks = (scale) => {
      const every = Math.max(1, Math.ceil((high - low) / 8));
      scale.ticks = [];
      for (let k = low; k <= high; k += every) scale.ticks.push({ value: 2 ** k });
    };
    axis.ticks.callback = power;
    return axis;
  }

  /** Options shared by all charts. */
  function common() {
    return {
      animation: false,
      responsive: true,
      maintainAspectRatio: false,
      locale: "en-US",
      color: variable("--text"),
    };
  }

  /** Shows and hides a line together with its band. */
  function toggleGroup(event, item, legend) {
    const chart = legend.chart;
    const group = chart.data.datasets[item.datasetIndex].group;
    const visible = chart.isDatasetVisible(item.datasetIndex);
    chart.data.datasets.forEach((dataset, index) => {
      if (dataset.group === group) chart.setDatasetVisibility(index, !visible);
    });
    chart.update();
  }

  function linesConfig(spec) {
    const datasets = [];
    const points = (series, values) =>
      series.x.map((x, i) => ({ x, y: isNumber(values[i]) ? values[i] : NaN }));
    spec.series.forEach((series, group) => {
      const line = color(series.color);
      const plain = { parsing: false, group, pointRadius: 0, stepped: series.stepped };
      if (series.low !== null) {
        const edge = { ...plain, band: true, borderWidth: 0, pointHitRadius: 0 };
        datasets.push({ ...edge, data: points(series, series.low), fill: false });
        datasets.push({
          ...edge, data: points(series, series.high), fill: "-1", backgroundColor: faint(line),
        });
      }
      datasets.push({
        ...plain,
        label: series.name,
        data: points(series, series.y),
        spec: series,
        borderColor: line,
        backgroundColor: series.filled ? faint(line) : line,
        // The first line is drawn last: policies that coincide show as rims of one another.
        borderWidth: 1.8 + (series.low === null ? 0 : 1.4 * group),
        fill: series.filled ? "origin" : false,
        pointRadius: series.points ? 3 : 0,
        pointBackgroundColor: line,
        // Over the lines by step.
        order: series.points ? -1 : 0,
      });
    });
    if (spec.marks.length > 0) {
      datasets.push({
        type: "scatter",
        label: spec.marks_name,
        group: -1,
        data: spec.marks.map((mark) => ({ x: mark.x, y: mark.y })),
        marks: spec.marks,
        pointStyle: "crossRot",
        pointRadius: 5,
        pointHoverRadius: 7,
        borderColor: variable("--alarm"),
        borderWidth: 2,
        order: -1,
      });
    }
    const ys = spec.series.flatMap((series) => series.y).concat(spec.marks.map((mark) => mark.y));
    const label = (item) => {
      const dataset = item.dataset;
      if (dataset.marks) return dataset.marks[item.dataIndex].text;
      const series = dataset.spec;
      const value = `${series.name}: ${shown(series.y[item.dataIndex])}`;
      if (series.low === null) return value;
      return `${value} [${shown(series.low[item.dataIndex])}, ${shown(series.high[item.dataIndex])}]`;
    };
    const xAxis = { ...valueAxis(spec.x, [], false), grid: { display: false } };
    // Steps and epochs are whole.
    if (spec.x !== "ms") xAxis.ticks.precision = 0;
    const visible = datasets.filter((dataset) => !dataset.band);
    return {
      type: "line",
      data: { datasets },
      options: {
        ...common(),
        interaction: { mode: "nearest", axis: "x", intersect: false },
        scales: {
          x: xAxis,
          y: valueAxis(spec.y, ys, spec.powers_of_two),
        },
        plugins: {
          legend: {
            display: visible.length > 1,
            position: "bottom",
            onClick: toggleGroup,
            labels: {
              boxWidth: 14,
              boxHeight: 3,
              color: variable("--text"),
              filter: (item, data) => !data.datasets[item.datasetIndex].band,
            },
          },
          tooltip: {
            filter: (item) => !item.dataset.band,
            callbacks: {
              title: (items) => (items.length > 0 ? `${spec.x} ${shown(items[0].parsed.x)}` : ""),
              label,
            },
          },
        },
      },
    };
  }

  /** A line across a chart of ranges at the value that means "no difference", in a band. */
  const referenceLine = {
    id: "referenceLine",
    beforeDatasetsDraw(chart, args, options) {
      if (!isNumber(options.at)) return;
      const { ctx, chartArea, scales } = chart;
      const pixel = (value) => scales.x.getPixelForValue(value);
      ctx.save();
      if (isNumber(options.margin)) {
        const left = Math.max(chartArea.left, pixel(options.at - options.margin));
        const right = Math.min(chartArea.right, pixel(options.at + options.margin));
        ctx.fillStyle = variable("--band");
        ctx.fillRect(left, chartArea.top, right - left, chartArea.height);
      }
      ctx.strokeStyle = variable("--text");
      ctx.setLineDash([4, 4]);
      ctx.beginPath();
      ctx.moveTo(pixel(options.at), chartArea.top);
      ctx.lineTo(pixel(options.at), chartArea.bottom);
      ctx.stroke();
      ctx.restore();
    },
  };

  function rangesConfig(spec) {
    const colors = spec.ranges.map((range) => color(range.color));
    const interval = (range) =>
      isNumber(range.low) && isNumber(range.high) ? [range.low, range.high] : null;
    const values = spec.ranges.flatMap((range) => [range.value, range.low, range.high]);
    const margin = isNumber(spec.margin) ? spec.margin : 0;
    if (isNumber(spec.reference)) values.push(spec.reference - margin, spec.reference + margin);
    const numbers = values.filter(isNumber);
    const low = Math.min(...numbers), high = Math.max(...numbers);
    const padding = (high - low) * 0.06 || Math.abs(high) * 0.05 || 1;
    const axis = valueAxis(spec.x, values, spec.powers_of_two);
    if (!spec.powers_of_two) {
      axis.beginAtZero = false;
      axis.suggestedMin = low === 0 ? 0 : low - padding;
      axis.suggestedMax = high + padding;
    }
    return {
      type: "bar",
      data: {
        labels: spec.ranges.map((range) => range.name),
        datasets: [
          {
            type: "line",
            indexAxis: "y",
            data: spec.ranges.map((range) => range.value),
            showLine: false,
            pointRadius: 5,
            pointHoverRadius: 7,
            pointBackgroundColor: colors,
            pointBorderColor: variable("--page"),
          },
          {
            indexAxis: "y",
            data: spec.ranges.map(interval),
            backgroundColor: colors.map((hex) => hex + "80"),
            borderColor: colors,
            borderWidth: 1,
            borderSkipped: false,
            maxBarThickness: 12,
          },
        ],
      },
      options: {
        ...common(),
        indexAxis: "y",
        interaction: { mode: "nearest", axis: "y", intersect: false },
        scales: {
          x: axis,
          y: {
            grid: { display: false, borderColor: variable("--line") },
            ticks: {
              color: variable("--text"),
              autoSkip: false,
              callback(value) {
                return ending(this.getLabelForValue(value), this.chart.width < 500 ? 18 : 44);
              },
            },
          },
        },
        plugins: {
          legend: { display: false },
          referenceLine: { at: spec.reference, margin: spec.margin },
          tooltip: {
            filter: (item, index) => index === 0,
            callbacks: {
              label: (item) => {
                const range = spec.ranges[item.dataIndex];
                const value = isNumber(range.value) ? [shown(range.value)] : [];
                if (interval(range) !== null) {
                  value.push(`[${shown(range.low)}, ${shown(range.high)}]`);
                }
                return value.join(" ");
              },
            },
          },
        },
      },
      plugins: [referenceLine],
    };
  }

  const configs = { lines: linesConfig, ranges: rangesConfig };

  function draw() {
    for (const figure of document.querySelectorAll("figure")) {
      const canvas = figure.querySelector("canvas");
      const spec = JSON.parse(figure.querySelector("script").textContent);
      const before = Chart.getChart(canvas);
      if (before) before.destroy();
      new Chart(canvas, configs[spec.kind](spec));
    }
  }

  dark.addEventListener("change", draw);
  draw();
})();
