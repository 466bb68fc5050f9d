//! Loops over whole rows and masks, compiled a second time for wider registers.
//!
//! Only the width differs: the same operations in the same order on each number, so that results are the same to the
//! bit. (Multiplications and additions aren't fused: the compiler never does that by itself.)
#![allow(unsafe_code)] // to call a function that needs processor features, once they were found to be there

/// A loop. What it calls must be inlined into it to profit, as [`run`](Self::run) itself must be: hence no closures.
pub(super) trait Wide {
    /// What it finds.
    type Output;
    /// To be marked `#[inline(always)]`.
    fn run(self) -> Self::Output;
}

/// Runs a loop, with AVX2 and instructions for bits where the processor has them.
#[inline]
pub(super) fn widest<W: Wide>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("popcnt")
    {
        // SAFETY: the processor has all three.
        return unsafe { with_avx2(work) };
    }
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn with_avx2<W: Wide>(work: W) -> W::Output {
    work.run()
}
