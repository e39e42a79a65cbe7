// A canvas to draw on, and its picture as the digits of the data are: of 32 × 32 points, white or black, the
// number of white ones in each block of 4 × 4, from 0 to 1.

const POINTS = 32;
const BLOCK = 4;
const SIDE = POINTS / BLOCK;

export class Drawing {
  #canvas;
  #pen;
  #seen;

  constructor(canvas, seen) {
    this.#canvas = canvas;
    this.#pen = canvas.getContext("2d", { willReadFrequently: true });
    this.#seen = seen;
    Object.assign(this.#pen, { lineWidth: 26, lineCap: "round", lineJoin: "round", strokeStyle: "white" });
    canvas.onpointerdown = (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.#pen.beginPath();
      this.#pen.moveTo(event.offsetX, event.offsetY);
      this.#line(event);
    };
    canvas.onpointermove = (event) => {
      if (event.buttons) this.#line(event);
    };
    canvas.onpointerup = () => this.pixels();
  }

  #line({ offsetX, offsetY }) {
    this.#pen.lineTo(offsetX, offsetY);
    this.#pen.stroke();
  }

  clear() {
    this.#pen.clearRect(0, 0, this.#canvas.width, this.#canvas.height);
    this.#seen.getContext("2d").clearRect(0, 0, SIDE, SIDE);
  }

  /** The part of the canvas that is drawn on. */
  #bounds() {
    const { width, height } = this.#canvas;
    const { data } = this.#pen.getImageData(0, 0, width, height);
    let [left, top, right, bottom] = [width, height, 0, 0];
    for (let at = 3; at < data.length; at += 4) {
      if (data[at] < 128) continue;
      const [x, y] = [((at - 3) / 4) % width, Math.floor((at - 3) / 4 / width)];
      [left, top, right, bottom] = [Math.min(left, x), Math.min(top, y), Math.max(right, x + 1), Math.max(bottom, y + 1)];
    }
    return right > left ? { left, top, width: right - left, height: bottom - top } : null;
  }

  /** 64 numbers from 0 to 1. The digit fills the height, as those of the data do. */
  pixels() {
    const pixels = new Float32Array(SIDE * SIDE);
    const bounds = this.#bounds();
    if (!bounds) return pixels;
    const small = new OffscreenCanvas(POINTS, POINTS);
    const pen = small.getContext("2d", { willReadFrequently: true });
    const scale = Math.min(POINTS / bounds.height, (POINTS - BLOCK) / bounds.width);
    const [width, height] = [bounds.width * scale, bounds.height * scale];
    pen.drawImage(this.#canvas, bounds.left, bounds.top, bounds.width, bounds.height, (POINTS - width) / 2, (POINTS - height) / 2, width, height);
    const { data } = pen.getImageData(0, 0, POINTS, POINTS);
    for (let point = 0; point < POINTS * POINTS; point++) {
      if (data[4 * point + 3] < 128) continue;
      const [x, y] = [point % POINTS, Math.floor(point / POINTS)];
      pixels[SIDE * Math.floor(y / BLOCK) + Math.floor(x / BLOCK)] += 1 / BLOCK ** 2;
    }
    this.#show(pixels);
    return pixels;
  }

  #show(pixels) {
    const pen = this.#seen.getContext("2d");
    const picture = pen.createImageData(SIDE, SIDE);
    pixels.forEach((value, at) => picture.data.set([255 * value, 255 * value, 255 * value, 255], 4 * at));
    pen.putImageData(picture, 0, 0);
  }
}
