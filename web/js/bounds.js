/** Bounds that hold where a caller gives none: a minute, a gigabyte, a megabyte of printed text. */
export const BOUNDS = { deadline: 60_000, memory: 2 ** 30, printed: 2 ** 20 };
