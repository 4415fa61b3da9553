//! Wide operations on rows of words, each in a portable form and in those of the machine.
//!
//! The portable ones are the definition; the others are compared with them by a test, on every machine that
//! has them. [`best`] asks the machine once what it can do.

use std::sync::OnceLock;

/// The operations in one form.
#[derive(Clone, Copy)]
pub struct Kernels {
    name: &'static str,
    or_into: fn(&mut [u64], &[u64]),
    or_into_each: fn(&mut [u64], &[u32], &[u64]),
}

impl std::fmt::Debug for Kernels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Rows of fewer words than this are not worth a call.
const SHORT: usize = 4;

impl Kernels {
    /// What the form needs of the machine.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// `into[i] |= from[i]`, as far as both go.
    #[inline]
    pub fn or_into(&self, into: &mut [u64], from: &[u64]) {
        if into.len() < SHORT { or_portable(into, from) } else { (self.or_into)(into, from) }
    }

    /// `into[at + i] |= from[i]` for each place `at`.
    ///
    /// # Panics
    /// If a row at one of the places would not end within `into`.
    #[inline]
    pub fn or_into_each(&self, into: &mut [u64], places: &[u32], from: &[u64]) {
        if from.len() < SHORT {
            or_each_portable(into, places, from)
        } else {
            (self.or_into_each)(into, places, from)
        }
    }
}

/// The form that every machine has.
pub const PORTABLE: Kernels =
    Kernels { name: "portable", or_into: or_portable, or_into_each: or_each_portable };

/// The widest form that this machine has.
pub fn best() -> Kernels {
    static BEST: OnceLock<Kernels> = OnceLock::new();
    *BEST.get_or_init(|| available().pop().unwrap_or(PORTABLE))
}

/// All forms that this machine has, the widest last.
pub fn available() -> Vec<Kernels> {
    #[allow(unused_mut, reason = "there are more on some machines")]
    let mut all = vec![PORTABLE];
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx2") {
            all.push(Kernels { name: "avx2", or_into: x86::or_avx2, or_into_each: x86::or_each_avx2 });
        }
        if is_x86_feature_detected!("avx512f") {
            all.push(Kernels { name: "avx512", or_into: x86::or_avx512, or_into_each: x86::or_each_avx512 });
        }
    }
    all
}

#[inline]
fn or_portable(into: &mut [u64], from: &[u64]) {
    into.iter_mut().zip(from).for_each(|(word, &other)| *word |= other);
}

#[inline]
fn or_each_portable(into: &mut [u64], places: &[u32], from: &[u64]) {
    for &at in places {
        or_portable(&mut into[at as usize..][..from.len()], from);
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "the wide registers are reached no other way")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, __m512i, _mm256_loadu_si256, _mm256_or_si256, _mm256_storeu_si256, _mm512_loadu_si512,
        _mm512_mask_storeu_epi64, _mm512_maskz_loadu_epi64, _mm512_or_si512, _mm512_storeu_si512,
    };

    pub fn or_avx2(into: &mut [u64], from: &[u64]) {
        // SAFETY: `available` lists this function only where the machine has AVX2, and it is private to this
        // file.
        unsafe { or_avx2_inner(into, from) }
    }

    pub fn or_each_avx2(into: &mut [u64], places: &[u32], from: &[u64]) {
        // SAFETY: `available` lists this function only where the machine has AVX2, and it is private to this
        // file.
        unsafe { or_each_avx2_inner(into, places, from) }
    }

    #[target_feature(enable = "avx2")]
    fn or_each_avx2_inner(into: &mut [u64], places: &[u32], from: &[u64]) {
        for &at in places {
            or_avx2_inner(&mut into[at as usize..][..from.len()], from);
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn or_avx2_inner(into: &mut [u64], from: &[u64]) {
        const LANES: usize = 4;
        let length = into.len().min(from.len());
        let (into, from) = (&mut into[..length], &from[..length]);
        let (mut blocks, mut others) = (into.chunks_exact_mut(LANES), from.chunks_exact(LANES));
        for (block, other) in blocks.by_ref().zip(others.by_ref()) {
            // SAFETY: both chunks are four words long, which is what an unaligned load and store of 256 bits
            // touch.
            unsafe {
                let place = block.as_mut_ptr().cast::<__m256i>();
                let both =
                    _mm256_or_si256(_mm256_loadu_si256(place), _mm256_loadu_si256(other.as_ptr().cast()));
                _mm256_storeu_si256(place, both);
            }
        }
        super::or_portable(blocks.into_remainder(), others.remainder());
    }

    pub fn or_avx512(into: &mut [u64], from: &[u64]) {
        // SAFETY: `available` lists this function only where the machine has AVX-512F, and it is private to
        // this file.
        unsafe { or_avx512_inner(into, from) }
    }

    pub fn or_each_avx512(into: &mut [u64], places: &[u32], from: &[u64]) {
        // SAFETY: `available` lists this function only where the machine has AVX-512F, and it is private to
        // this file.
        unsafe { or_each_avx512_inner(into, places, from) }
    }

    #[target_feature(enable = "avx512f")]
    fn or_each_avx512_inner(into: &mut [u64], places: &[u32], from: &[u64]) {
        for &at in places {
            or_avx512_inner(&mut into[at as usize..][..from.len()], from);
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn or_avx512_inner(into: &mut [u64], from: &[u64]) {
        const LANES: usize = 8;
        let length = into.len().min(from.len());
        let (into, from) = (&mut into[..length], &from[..length]);
        let (mut blocks, mut others) = (into.chunks_exact_mut(LANES), from.chunks_exact(LANES));
        for (block, other) in blocks.by_ref().zip(others.by_ref()) {
            // SAFETY: both chunks are eight words long, which is what an unaligned load and store of 512 bits
            // touch.
            unsafe {
                let place = block.as_mut_ptr().cast::<__m512i>();
                let both =
                    _mm512_or_si512(_mm512_loadu_si512(place), _mm512_loadu_si512(other.as_ptr().cast()));
                _mm512_storeu_si512(place, both);
            }
        }
        let (rest, other) = (blocks.into_remainder(), others.remainder());
        let mask = (1u8 << rest.len()) - 1;
        // SAFETY: the mask has a bit for each word of the remainders, which are of one length below eight,
        // and masked lanes are not touched.
        unsafe {
            let both = _mm512_or_si512(
                _mm512_maskz_loadu_epi64(mask, rest.as_ptr().cast()),
                _mm512_maskz_loadu_epi64(mask, other.as_ptr().cast()),
            );
            _mm512_mask_storeu_epi64(rest.as_mut_ptr().cast(), mask, both);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_does_what_the_portable_one_does() {
        let mut random = crate::Random::new(1);
        let forms = available();
        assert!(forms.iter().any(|form| form.name() == best().name()));
        for length in 0..70 {
            for shift in 0..3 {
                let from: Vec<u64> = (0..length + shift).map(|_| random.bits() & random.bits()).collect();
                let into: Vec<u64> = (0..length + shift + 2).map(|_| random.bits() & random.bits()).collect();
                let mut expected = into.clone();
                or_portable(&mut expected[shift..shift + length], &from[shift..]);
                for form in &forms {
                    let mut result = into.clone();
                    (form.or_into)(&mut result[shift..shift + length], &from[shift..]);
                    assert_eq!(result, expected, "{form:?}, {length} words");
                    let mut result = into.clone();
                    form.or_into(&mut result[shift..shift + length], &from[shift..]);
                    assert_eq!(result, expected, "{form:?}, {length} words");
                    // A row added at several places, which may overlap.
                    let places = [shift, 1, shift + 2].map(|place| place as u32);
                    let mut expected = into.clone();
                    or_each_portable(&mut expected, &places, &from[shift..]);
                    for each in [form.or_into_each, |into: &mut [u64], places: &[u32], from: &[u64]| {
                        best().or_into_each(into, places, from)
                    }] {
                        let mut result = into.clone();
                        each(&mut result, &places, &from[shift..]);
                        assert_eq!(result, expected, "{form:?}, {length} words");
                    }
                }
            }
        }
    }
}
