// A pad to draw on, and what a model sees of it: levels of 8 bits, grey (ink bright on dark) or a plane for each colour.

const INK = 22;
// The part of a model's image that a drawn digit fills: all of small ones, as in the UCI digits, the middle of MNIST's.
const FILLED = { small: 1, large: 20 / 28 };
const SMALL = 16;
const STEP = 8;
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Pad {
  #canvas;
  #pen;
  #drawn = false;
  #keys = { place: null, down: false };

  constructor(canvas, changed) {
    this.#canvas = canvas;
    this.#pen = canvas.getContext("2d", { willReadFrequently: true });
    this.changed = changed;
    this.clear();
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.#drawn = true;
      this.#pen.beginPath();
      this.#pen.moveTo(...this.#place(event));
      this.#line(this.#place(event));
    });
    canvas.addEventListener("pointermove", (event) => {
      if (event.buttons & 1 && canvas.hasPointerCapture(event.pointerId)) this.#line(this.#place(event));
    });
    canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  clear() {
    this.#pen.fillStyle = "#000";
    this.#pen.fillRect(0, 0, this.#canvas.width, this.#canvas.height);
    this.#drawn = true;
    this.changed();
  }

  // Shows a picture, whole. For a model of grey pictures, one with a light ground is inverted.
  async show(file, colours) {
    const picture = await createImageBitmap(file);
    const { width, height } = this.#canvas;
    this.#pen.imageSmoothingEnabled = false;
    this.#pen.drawImage(picture, 0, 0, width, height);
    const shown = this.#pen.getImageData(0, 0, width, height);
    const ground = [0, width - 1, width * (height - 1), width * height - 1].map((at) => brightness(shown.data, at));
    if (colours === 1 && ground.reduce((sum, it) => sum + it, 0) > 2 * 255) {
      for (let at = 0; at < shown.data.length; at += 1) if (at % 4 < 3) shown.data[at] = 255 - shown.data[at];
      this.#pen.putImageData(shown, 0, 0);
    }
    this.#drawn = false;
    this.changed();
  }

  // Levels of an image so large, row by row; of 3 colours, one plane after the other.
  levels(width, height, colours) {
    const from = this.#drawn ? this.#bounds(Math.min(width, height)) : this.#whole();
    const all = this.#pen.getImageData(0, 0, this.#canvas.width, this.#canvas.height);
    const seen = new Uint8Array(colours * width * height);
    for (let pixel = 0; pixel < seen.length; pixel += 1) {
      const colour = colours === 1 ? null : Math.floor(pixel / (width * height));
      const [row, column] = [Math.floor(pixel / width) % height, pixel % width];
      seen[pixel] = mean(all, from, column / width, row / height, 1 / width, 1 / height, colour);
    }
    return seen;
  }

  #whole() {
    return { left: 0, top: 0, side: this.#canvas.width };
  }

  // The square around what is drawn, with the margin that models of this size expect.
  #bounds(size) {
    const { data, width, height } = this.#pen.getImageData(0, 0, this.#canvas.width, this.#canvas.height);
    let [left, right, top, bottom] = [width, -1, height, -1];
    for (let at = 0; at < width * height; at += 1) {
      if (brightness(data, at) < 64) continue;
      const [column, row] = [at % width, Math.floor(at / width)];
      [left, right, top, bottom] = [
        Math.min(left, column), Math.max(right, column), Math.min(top, row), Math.max(bottom, row),
      ];
    }
    if (right < 0) return this.#whole();
    const filled = size < SMALL ? FILLED.small : FILLED.large;
    const side = (Math.max(right - left, bottom - top) + 1) / filled;
    return { left: (left + right + 1 - side) / 2, top: (top + bottom + 1 - side) / 2, side };
  }

  #place(event) {
    const box = this.#canvas.getBoundingClientRect();
    const scale = this.#canvas.width / box.width;
    return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
  }

  // A pen that the arrow keys move: Space sets it down and lifts it.
  #key(event) {
    const keys = this.#keys;
    const [x, y] = keys.place ?? [this.#canvas.width / 2, this.#canvas.height / 2];
    const step = ARROWS[event.key];
    if (event.key === " ") keys.down = !keys.down;
    else if (step === undefined) return;
    event.preventDefault();
    this.#drawn = true;
    const within = (at, size) => Math.min(size - 1, Math.max(0, at));
    keys.place = step === undefined ? [x, y]
      : [within(x + STEP * step[0], this.#canvas.width), within(y + STEP * step[1], this.#canvas.height)];
    if (!keys.down) return;
    this.#pen.beginPath();
    this.#pen.moveTo(x, y);
    this.#line(keys.place);
  }

  #line(to) {
    Object.assign(this.#pen, { strokeStyle: "#fff", lineWidth: INK, lineCap: "round", lineJoin: "round" });
    this.#pen.lineTo(...to);
    this.#pen.stroke();
    this.changed();
  }
}

function brightness(data, at) {
  return (data[4 * at] + data[4 * at + 1] + data[4 * at + 2]) / 3;
}

// The mean brightness of a cell, or of one of its colours, given as parts of the square `from`; outside of the pad it is dark.
function mean({ data, width, height }, from, x, y, w, h, colour) {
  const cell = (start, part, size) => {
    const first = Math.round(start + from.side * part);
    return [first, Math.max(first + 1, Math.round(start + from.side * (part + size)))];
  };
  const [left, right] = cell(from.left, x, w);
  const [top, bottom] = cell(from.top, y, h);
  let sum = 0;
  for (let row = Math.max(0, top); row < Math.min(height, bottom); row += 1) {
    for (let column = Math.max(0, left); column < Math.min(width, right); column += 1) {
      const at = row * width + column;
      sum += colour === null ? brightness(data, at) : data[4 * at + colour];
    }
  }
  return Math.round(sum / ((right - left) * (bottom - top)));
}
