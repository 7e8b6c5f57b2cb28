// The play button of Replay: time goes on by itself, faster than it did.
import { setText } from "../../page/dom.js";

export class Playback {
  #steppedAt = 0; // performance.now() of the last step, 0 while paused

  /**
   * @param {HTMLButtonElement} button
   * @param {(seconds: number) => boolean} advance called with the seconds since the last step; tells
   *   whether there is more to play
   */
  constructor(button, advance) {
    this.button = button;
    this.advance = advance;
  }

  get isPlaying() {
    return this.#steppedAt > 0;
  }

  play() {
    this.#steppedAt = performance.now();
    setText(this.button, "❚❚ Pause");
    requestAnimationFrame(this.#step);
  }

  pause() {
    this.#steppedAt = 0;
    setText(this.button, "▶ Play");
  }

  /** @param {number} time the frame's; that of the first may be before `play` */
  #step = (time) => {
    if (!this.isPlaying) return;
    const seconds = Math.max(0, time - this.#steppedAt) / 1000;
    this.#steppedAt = Math.max(this.#steppedAt, time);
    if (this.advance(seconds)) requestAnimationFrame(this.#step);
  };
}
