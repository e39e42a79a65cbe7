//! Attention of 16-bit floats on warps that multiply matrices: CUDA C++ alone.
//!
//! A warp takes 16 queries, a group 128, and 64 keys at a time. Queries, scores and sums stay in the
//! registers of the warp, as its instructions hold matrices: of a matrix of 16 rows, invocation `l` has
//! two neighbours each in the rows `l / 4` and `l / 4 + 8`. Keys and values go through shared memory,
//! whose rows are eight elements longer, so that eight of them lie in different banks; the next ones
//! are fetched while these are worked on. Weights are rounded to 16 bits on their way to the values.
//!
//! Source: PTX ISA, "Matrix multiply-accumulate operation using mma instruction" (m16n8k16),
//! "ldmatrix" and "cp.async"; Dao, FlashAttention-2 (2023).

use super::{
    super::{
        Shader, ShaderDialect,
        body::KernelBody,
        builder::{KernelBuilder, float},
        dialect::WORKGROUP,
        index::position,
        scalar_type::{Caps, ScalarType},
    },
    AttentionKernel, MatrixStarts,
};
use crate::{
    device::OpCall,
    error::Result,
    plan::attention::{Attention, Matrices},
};
use ferroflow_ir::DType;

/// Queries of a group, 16 for each warp.
pub(super) const ROWS: usize = WORKGROUP / 32 * 16;

/// Bytes of an element.
const BYTES: usize = 2;

/// Keys at a time.
const KEYS: usize = 64;

/// Elements of 16 bits that are read at once.
const CHUNK: usize = 8;

/// Rows and columns of matrices that are multiplied are multiples of this.
const STEP: usize = 16;

/// The most elements of a query, key or value: more do not fit the registers.
const MOST: usize = 128;

/// The position of a score: its query, and its key.
const ROW: &str = "(e < 2u ? query_0 : query_1)";
const COLUMN: &str = "(start + n * 8u + pair + e % 2u)";

/// Elements of a row of shared memory.
fn pitch(size: usize) -> usize {
    size + CHUNK
}

/// Bytes of shared memory that a program may have without asking.
const MOST_SHARED: usize = 48 << 10;

/// Elements of shared memory for some keys and their values.
fn shared_elements(attention: &Attention) -> usize {
    KEYS * (pitch(attention.depth) + pitch(attention.width))
}

/// Shared arrays for keys and values, with their lengths in `f32`: for twice as many keys where there
/// is room.
pub(super) fn shared(attention: &Attention) -> Vec<(&'static str, usize)> {
    let turns = if 2 * BYTES * shared_elements(attention) <= MOST_SHARED { 2 } else { 1 };
    let length = |size: usize| turns * KEYS * pitch(size) / 2;
    vec![("keys", length(attention.depth)), ("values", length(attention.width))]
}

/// Whether the matrices of a call are such.
pub(super) fn fits(call: &OpCall<'_>, attention: &Attention) -> bool {
    let Attention { depth, width, query, key, value, .. } = attention;
    let is_half = matches!(call.dtype(0), DType::F16 | DType::BF16);
    let is_read_in_chunks = |matrices: &Matrices| {
        let steps = matrices.first.dims.iter().map(|dim| dim.stride.unsigned_abs());
        let whole = |step: usize| step.is_multiple_of(CHUNK);
        let first = matrices.first.offset.unsigned_abs();
        matrices.col_step == 1 && steps.chain([matrices.row_step, first]).all(whole)
    };
    is_half
        && [depth, width].iter().all(|&&size| size > 0 && size <= MOST && size % STEP == 0)
        && [query, key, value].into_iter().all(is_read_in_chunks)
}

/// The kernel; `None` where the expression cannot be written.
///
/// # Errors
///
/// When operands of the expression do not fit each other, which is a defect.
pub(super) fn kernel(
    call: &OpCall<'_>,
    attention: &Attention,
    caps: Caps,
) -> Result<Option<Shader>> {
    let k = KernelBuilder::new(caps);
    AttentionKernel::new(&k, call, attention);
    let count = attention.count() * attention.queries.div_ceil(ROWS) * WORKGROUP;
    let Some(body) = (MatrixText { call, caps, attention }).by_matrices() else { return Ok(None) };
    let shared = shared(attention);
    Ok(k.finish(count)?.map(|shader| Shader { shared, body: KernelBody::Text(body), ..shader }))
}

/// Writes the text.
struct MatrixText<'a> {
    call: &'a OpCall<'a>,
    caps: Caps,
    attention: &'a Attention,
}

impl MatrixText<'_> {
    /// The text of some statements of a kernel, which know the positions that this text defines.
    fn part(
        &self,
        write: impl for<'k> FnOnce(&AttentionKernel<'_, 'k>, &MatrixStarts<'k>) -> Option<()>,
    ) -> Option<String> {
        let k = KernelBuilder::new(self.caps);
        let position = |name: &str| k.opaque(name, ScalarType::U32);
        let others = 0..self.attention.others.len();
        let starts = MatrixStarts {
            query: position("q"),
            key: position("k"),
            value: position("v"),
            output: position("o"),
            others: others.map(|at| position(&format!("other{at}"))).collect(),
        };
        write(&AttentionKernel::new(&k, self.call, self.attention), &starts)?;
        Some(format!("{{\n{}}}\n", k.text(ShaderDialect::Cuda)))
    }

    /// The declarations of the positions at which the matrices begin.
    fn matrices(&self) -> String {
        let Attention { query, key, value, output, others, .. } = self.attention;
        let named = [("q", query), ("k", key), ("v", value), ("o", output)];
        let named = named.map(|(name, matrices)| (name.to_string(), matrices));
        let others = others.iter().enumerate();
        let others = others.map(|(at, matrices)| (format!("other{at}"), matrices));
        let declared = named.into_iter().chain(others).map(|(name, matrices)| {
            let k = KernelBuilder::new(self.caps);
            let matrix = k.opaque("matrix", ScalarType::U32);
            // Numbers are not bound to names, but the text has these.
            k.variable(&name, position(&k, &matrices.first, matrix));
            k.text(ShaderDialect::Cuda)
        });
        declared.collect()
    }

    /// The name of the elements.
    fn element(&self) -> &'static str {
        if self.call.dtype(0) == DType::F16 { "Half_" } else { "Brain_" }
    }

    /// A group for 128 queries.
    pub(super) fn by_matrices(&self) -> Option<String> {
        let Attention { queries, keys, depth, width, query, .. } = self.attention;
        let (steps, columns, tiles) = (depth / STEP, width / 8, KEYS / 8);
        let down = queries.div_ceil(ROWS);
        let mut body = format!(
            "let matrix = workgroup / {down}u;\n{}\
             let row_0 = workgroup % {down}u * {ROWS}u + local / 32u * 16u + local % 32u / 4u;\n\
             let row_1 = row_0 + 8u;\n\
             let query_0 = min(row_0, {last}u);\nlet query_1 = min(row_1, {last}u);\n\
             let pair = local % 4u * 2u;\n\
             u32 query[{steps}][4];\n\
             unroll_ for (u32 s = 0u; s < {steps}u; s++) {{\nunroll_ for (u32 i = 0u; i < 4u; i++) {{\n\
             let at = q + (i % 2u == 0u ? query_0 : query_1) * {row_step}u + s * {STEP}u + i / 2u * 8u + pair;\n\
             query[s][i] = *(const u32*)(in0.at + at);\n}}\n}}\n\
             f32 sums[{columns}][4];\n\
             unroll_ for (u32 n = 0u; n < {columns}u; n++) {{\n\
             unroll_ for (u32 e = 0u; e < 4u; e++) {{ sums[n][e] = 0.0f; }}\n}}\n",
            self.matrices(),
            last = queries - 1,
            row_step = query.row_step,
        );
        for i in 0..2 {
            body += &format!(
                "var largest{i} = {};\nvar total{i} = 0.0f;\nvar counts{i} = 0.0f;\n",
                float(f32::MIN)
            );
        }
        let next = format!("start + {KEYS}u");
        if self.is_ahead() {
            body += &self.fetched("0u");
        }
        body += &format!("for (u32 start = 0u; start < {keys}u; start += {KEYS}u) {{\n");
        body += &match self.is_ahead() {
            // The next keys are on their way while these are worked on.
            true => format!(
                "copied_();\nbarrier_();\nif ({next} < {keys}u) {{\n{}}}\n",
                self.fetched(&next)
            ),
            false => format!("barrier_();\n{}copied_();\nbarrier_();\n", self.fetched("start")),
        };
        body += &format!(
            "{own}f32 c[{tiles}][4];\n\
             unroll_ for (u32 n = 0u; n < {tiles}u; n += 2u) {{\n\
             unroll_ for (u32 e = 0u; e < 4u; e++) {{ c[n][e] = 0.0f; c[n + 1u][e] = 0.0f; }}\n\
             unroll_ for (u32 s = 0u; s < {steps}u; s++) {{\nu32 b[4];\n\
             matrices_(b, keys_ + (n * 8u + local % 32u / 16u * 8u + local % 8u) * {pitch}u + s * {STEP}u + local % 16u / 8u * 8u);\n\
             multiply_<{element}>(c[n], query[s], b[0], b[1]);\n\
             multiply_<{element}>(c[n + 1u], query[s], b[2], b[3]);\n}}\n}}\n",
            own = self.buffers("start"),
            pitch = pitch(*depth),
            element = self.element(),
        );
        body += &self.weights(tiles, columns)?;
        body += &format!(
            "unroll_ for (u32 s = 0u; s < {}u; s++) {{\nu32 a[4];\n\
             unroll_ for (u32 i = 0u; i < 4u; i++) {{\n\
             let n = s * 2u + i / 2u;\nlet e = i % 2u * 2u;\n\
             a[i] = packed_<{element}>(c[n][e], c[n][e + 1u]);\n}}\n\
             unroll_ for (u32 n = 0u; n < {columns}u; n += 2u) {{\nu32 b[4];\n\
             turned_(b, values_ + (s * {STEP}u + local % 16u) * {pitch}u + n * 8u + local % 32u / 16u * 8u);\n\
             multiply_<{element}>(sums[n], a, b[0], b[1]);\n\
             multiply_<{element}>(sums[n + 1u], a, b[2], b[3]);\n}}\n}}\n}}\n",
            KEYS / STEP,
            pitch = pitch(*width),
            element = self.element(),
        );
        body += &self.results(columns)?;
        Some(body)
    }

    /// Whether there is room to fetch keys and values ahead.
    fn is_ahead(&self) -> bool {
        2 * BYTES * shared_elements(self.attention) <= MOST_SHARED
    }

    /// The declarations of the arrays that hold the keys from `start` on, and their values.
    fn buffers(&self, start: &str) -> String {
        let turn = if self.is_ahead() { format!("({start}) / {KEYS}u % 2u") } else { "0u".into() };
        let Attention { depth, width, .. } = self.attention;
        format!(
            "unsigned short* keys_ = (unsigned short*)keys + {turn} * {}u;\n\
             unsigned short* values_ = (unsigned short*)values + {turn} * {}u;\n",
            KEYS * pitch(*depth),
            KEYS * pitch(*width),
        )
    }

    /// The statements that have the keys from `from` on and their values fetched.
    fn fetched(&self, from: &str) -> String {
        let Attention { key, value, depth, width, .. } = self.attention;
        format!(
            "{{\n{}{}{}}}\n",
            self.buffers(from),
            self.rows("keys_", "in1.at + k", key, *depth, from),
            self.rows("values_", "in2.at + v", value, *width, from),
        )
    }

    fn rows(&self, to: &str, source: &str, matrices: &Matrices, size: usize, from: &str) -> String {
        let keys = self.attention.keys;
        let chunks = size / CHUNK;
        format!(
            "unroll_ for (u32 s = local; s < {all}u; s += {WORKGROUP}u) {{\n\
             let key = {from} + s / {chunks}u;\nlet chunk = s % {chunks}u * {CHUNK}u;\n\
             let found = {source} + min(key, {last}u) * {step}u + chunk;\n\
             copy_({to} + s / {chunks}u * {pitch}u + chunk, found, key < {keys}u);\n}}\n",
            all = KEYS * chunks,
            last = keys - 1,
            step = matrices.row_step,
            pitch = pitch(size),
        )
    }

    /// The statements that make weights of scores, under the largest score so far.
    fn weights(&self, tiles: usize, columns: usize) -> Option<String> {
        let [score, row, col] = ["c[n][e]", ROW, COLUMN];
        let each = |body: &str| {
            format!(
                "unroll_ for (u32 n = 0u; n < {tiles}u; n++) {{\n\
                 unroll_ for (u32 e = 0u; e < 4u; e++) {{\n{body}}}\n}}\n"
            )
        };
        let mut text = each(&self.part(|kernel, starts| {
            let at = [row, col].map(|text| kernel.k.opaque(text, ScalarType::U32));
            kernel.map(starts, kernel.k.opaque(score, ScalarType::F32), at.into())
        })?);
        for i in 0..2 {
            text += &format!(
                "var high{i} = largest{i};\n\
                 unroll_ for (u32 n = 0u; n < {tiles}u; n++) {{ \
                 high{i} = max(high{i}, max(c[n][{first}], c[n][{second}])); }}\n\
                 high{i} = max(high{i}, subgroup_xor_(high{i}, 1u));\n\
                 high{i} = max(high{i}, subgroup_xor_(high{i}, 2u));\n\
                 let shrink{i} = near_exp_(largest{i} - high{i});\nlargest{i} = high{i};\n\
                 total{i} = total{i} * shrink{i};\n\
                 unroll_ for (u32 n = 0u; n < {columns}u; n++) {{ \
                 sums[n][{first}] *= shrink{i}; sums[n][{second}] *= shrink{i}; }}\n",
                first = 2 * i,
                second = 2 * i + 1,
            );
        }
        for (i, name) in ["e < 2u", "e >= 2u"].iter().enumerate() {
            let kept = self.part(|kernel, starts| {
                let at = [row, col].map(|text| kernel.k.opaque(text, ScalarType::U32));
                let counts = format!("counts{i}");
                let weight = [score, &counts].map(|text| kernel.k.opaque(text, ScalarType::F32));
                kernel.keep(starts, weight.into(), at.into());
                Some(())
            })?;
            text += &each(&format!(
                "if ({name}) {{\nc[n][e] = near_exp_(c[n][e] - high{i});\n\
                 total{i} = total{i} + c[n][e];\n{kept}}}\n"
            ));
        }
        Some(text)
    }

    /// The statements that store what the sums are.
    fn results(&self, columns: usize) -> Option<String> {
        let mut text = String::new();
        for i in 0..2 {
            for (name, fold) in [("total", "+"), ("counts", "max")] {
                for far in [1, 2] {
                    let (own, other) =
                        (format!("{name}{i}"), format!("subgroup_xor_({name}{i}, {far}u)"));
                    text += &match fold {
                        "+" => format!("{own} = {own} + {other};\n"),
                        fold => format!("{own} = {fold}({own}, {other});\n"),
                    };
                }
            }
        }
        let store = self.part(|kernel, starts| {
            let at = ["(e < 2u ? row_0 : row_1)", "(n * 8u + pair + e % 2u)"];
            let sum = ["sums[n][e]", "(e < 2u ? total0 : total1)", "(e < 2u ? counts0 : counts1)"];
            let at = at.map(|text| kernel.k.opaque(text, ScalarType::U32));
            let sum = sum.map(|text| kernel.k.opaque(text, ScalarType::F32));
            kernel.store(starts, at.into(), sum.into());
            Some(())
        })?;
        Some(
            text + &format!(
                "unroll_ for (u32 n = 0u; n < {columns}u; n++) {{\n\
                 unroll_ for (u32 e = 0u; e < 4u; e++) {{\n{store}}}\n}}\n"
            ),
        )
    }
}
