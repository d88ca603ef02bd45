/** Measured values as text. */

/** A measured value with as many digits as an axis needs. */
export const measured = (value, digits = 3) => String(Number(value.toPrecision(digits)));

/** What a series reads at a step, for the text beside a plot. */
export const reading = ({ value, step }, digits) => `${measured(value, digits)} at ${step}`;
