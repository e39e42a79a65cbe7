//! The list of operations that machines have.

/// All operations, handed to the macro `$then` behind other arguments: `load` from a tile of elements
/// of so many bytes, `unary` from the value at hand, `binary` from it and the tile at operand `a`,
/// `ternary` with the tile at operand `b` too, and `store` writes a tile and ends the program.
macro_rules! operations {
    ($then:ident!($($arguments:tt)*)) => {
        $then! { $($arguments)*
            load {
                LoadF32 load_f32 4 |at| V::load(at);
                LoadFlushed load_flushed 4 |at| V::load(at).flush();
                LoadI32 load_i32 4 |at| V::load_i32(at);
                LoadF16 load_f16 2 |at| V::load_f16(at);
                LoadBf16 load_bf16 2 |at| V::load_bf16(at);
                LoadBool load_bool 1 |at| V::load_bool(at);
            }
            unary {
                Neg neg |x| math::neg(x);
                Abs abs |x| math::abs(x);
                Sign sign |x| math::sign(x);
                Flush flush |x| x.flush();
                Exp exp |x| math::exp(x);
                Expm1 expm1 |x| math::expm1(x);
                Log log |x| math::log(x);
                Log1p log1p |x| math::log1p(x);
                Tanh tanh |x| math::tanh(x);
                Erf erf |x| math::erf(x);
                Erfc erfc |x| math::erfc(x);
                Sin sin |x| math::sin(x);
                Cos cos |x| math::cos(x);
                Sqrt sqrt |x| x.sqrt();
                Square square |x| x.times(x);
                Rsqrt rsqrt |x| x.fill(1.0).over(x.sqrt());
                Floor floor |x| x.floor();
                Ceil ceil |x| x.ceil();
                Trunc trunc |x| x.trunc();
                Rint rint |x| x.rint();
                IsNan is_nan |x| x.is_nan();
                IsInf is_inf |x| math::is_infinite(x);
                IsFinite is_finite |x| math::is_finite(x);
                Not not |x| x.xor(x.fill_bits(u32::MAX));
                MaskToF32 mask_to_f32 |x| x.and(x.fill(1.0));
                F32ToMask f32_to_mask |x| x.is_ne(x.fill(0.0));
            }
            binary {
                Add add |x, y| x.plus(y);
                Sub sub |x, y| x.minus(y);
                SubFrom sub_from |x, y| y.minus(x);
                Mul mul |x, y| x.times(y);
                Div div |x, y| x.over(y);
                DivInto div_into |x, y| y.over(x);
                AddFlushed add_flushed |x, y| x.plus(y.flush());
                SubFlushed sub_flushed |x, y| x.minus(y.flush());
                SubFromFlushed sub_from_flushed |x, y| y.flush().minus(x);
                MulFlushed mul_flushed |x, y| x.times(y.flush());
                DivFlushed div_flushed |x, y| x.over(y.flush());
                DivIntoFlushed div_into_flushed |x, y| y.flush().over(x);
                Max max |x, y| math::larger(x, y);
                MaxFrom max_from |x, y| math::larger(y, x);
                Min min |x, y| math::smaller(x, y);
                MinFrom min_from |x, y| math::smaller(y, x);
                Eq eq |x, y| x.is_eq(y);
                Ne ne |x, y| x.is_ne(y);
                Lt lt |x, y| x.is_lt(y);
                Le le |x, y| x.is_le(y);
                Gt gt |x, y| y.is_lt(x);
                Ge ge |x, y| y.is_le(x);
                SubSquare sub_square |x, y| { let d = x.minus(y); d.times(d) };
                And and |x, y| x.and(y);
                Or or |x, y| x.or(y);
                Xor xor |x, y| x.xor(y);
            }
            ternary {
                MulAdd mul_add |x, y, z| x.times(y).plus(z);
                MulAddFlushed mul_add_flushed |x, y, z| x.times(y.flush()).plus(z.flush());
                SubMul sub_mul |x, y, z| x.minus(y).times(z);
                MaxMin max_min |x, y, z| math::smaller(math::larger(x, y), z);
                SelectBy select_by |condition, then, otherwise| condition.choose(then, otherwise);
                SelectThen select_then |then, condition, otherwise| condition.choose(then, otherwise);
                DivBy div_by |x, divisor, reciprocal| math::divided(x, divisor, reciprocal);
                SelectElse select_else |otherwise, condition, then| condition.choose(then, otherwise);
            }
            store {
                StoreF32 store_f32 4 |at, x| x.store(at);
                StoreFlushed store_flushed 4 |at, x| x.flush().store(at);
                StreamF32 stream_f32 4 |at, x| x.stream(at);
                StreamFlushed stream_flushed 4 |at, x| x.flush().stream(at);
                AddInto add_into 4 |at, x| x.plus(V::load(at)).store(at);
                MaxInto max_into 4 |at, x| math::larger(x, V::load(at)).store(at);
                MinInto min_into 4 |at, x| math::smaller(x, V::load(at)).store(at);
                StoreF16 store_f16 2 |at, x| x.store_f16(at);
                StoreBf16 store_bf16 2 |at, x| math::round_upper(x).store_upper(at);
                StoreBool store_bool 1 |at, x| x.store_bool(at);
            }
        }
    };
}

/// The programs that run as one loop, without jumps between their operations, handed to the macro `$then`
/// behind other arguments: what short rows are put through most.
macro_rules! whole_programs {
    ($then:ident!($($arguments:tt)*)) => {
        $then! { $($arguments)*
            [LoadF32 AddInto]
            [LoadF32 MaxInto]
            [LoadFlushed Square AddInto]
            [LoadFlushed SubSquare AddInto]
            [LoadFlushed SubFlushed Square StoreFlushed]
            [LoadF32 Mul StoreFlushed]
            [LoadF32 Mul StreamFlushed]
            [LoadFlushed SubMul StoreFlushed]
            [LoadFlushed SubMul StreamFlushed]
            [LoadFlushed SubMul Add StoreFlushed]
            [LoadFlushed SubMul Add StreamFlushed]
            [LoadFlushed Mul Mul StoreFlushed]
            [LoadFlushed Mul Mul StreamFlushed]
            [LoadFlushed SubMul MulAdd StoreFlushed]
            [LoadFlushed SubMul MulAdd StreamFlushed]
            [LoadFlushed SubFlushed MulAddFlushed StoreFlushed]
            [LoadFlushed SubFlushed MulAddFlushed StreamFlushed]
        }
    };
}

pub(super) use {operations, whole_programs};
