//! Elements of which several make a group of 32 bits.

use bytemuck::Pod;
use half::bf16;

/// An element that registers hold in groups of 32 bits.
pub(in crate::cpu) trait Grouped: Pod + Send + Sync {
    /// Elements of a group.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "registers of x86-64 ask"))]
    const GROUP: usize = 4 / size_of::<Self>();

    /// The bits.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "registers of x86-64 ask"))]
    fn bits(self) -> u32;
}

macro_rules! grouped {
    ($($type:ty: $x:ident => $bits:expr;)*) => {$(
        impl Grouped for $type {
            #[inline(always)]
            fn bits(self) -> u32 {
                let $x = self;
                $bits
            }
        }
    )*};
}

grouped! {
    i8: x => u32::from(x as u8);
    u8: x => u32::from(x);
    bf16: x => u32::from(x.to_bits());
}
