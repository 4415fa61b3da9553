//! What is done with masks and logits on the device, in memory of the pool or of the caller.

use crate::charts::Charts;
use crate::device::{Buffer, Grid, words_of};
use crate::graphs::Launch;
use crate::layout::{Kernel, LogitsParams};
use crate::options::ChartError;
use crate::search::{DeviceMasks, MAX_ACCEPTED};

/// The type of logits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogitType {
    /// 32 bits.
    F32,
    /// 16 bits, IEEE 754.
    F16,
    /// 16 bits, the upper half of 32.
    Bf16,
}

/// Logits in memory of the device, which are masked in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Logits {
    /// Where the first row begins.
    pub address: u64,
    /// Numbers from the beginning of one row to that of the next.
    pub stride: usize,
    /// Numbers of a row; those beyond the vocabulary are masked too.
    pub n_columns: usize,
    /// Their type.
    pub of: LogitType,
}

impl Charts {
    /// Words in memory of the device, for whoever has no other: they live as long as the pool.
    pub fn buffer(&mut self, words: &[u32]) -> Result<Buffer, ChartError> {
        let buffer = self.device.allocate(words.len())?;
        self.device.write(&buffer, 0, words)?;
        self.buffers.push(buffer);
        Ok(buffer)
    }

    /// What a buffer holds.
    pub fn read_buffer(&mut self, buffer: &Buffer) -> Result<Vec<u32>, ChartError> {
        self.check_buffer(buffer)?;
        let mut words = vec![0; buffer.words];
        self.device.read(buffer, 0, &mut words)?;
        Ok(words)
    }

    fn check_buffer(&self, buffer: &Buffer) -> Result<(), ChartError> {
        let is_known = self.buffers.contains(buffer);
        if is_known {
            Ok(())
        } else {
            Err(ChartError::Unknown { what: "buffer at", id: buffer.address as usize })
        }
    }

    /// Adds to masks that lie one behind the other in a buffer the union of token sets, each a buffer as long
    /// as a mask; at most 64 to a mask.
    #[allow(unsafe_code, reason = "buffers of this pool")]
    pub fn or_buffers(&mut self, masks: &Buffer, sets: &[Vec<Buffer>]) -> Result<(), ChartError> {
        let n_words = masks.words / sets.len().max(1);
        for buffer in sets.iter().flatten().chain([masks]) {
            self.check_buffer(buffer)?;
            if buffer.words < n_words {
                return Err(ChartError::Unknown {
                    what: "token set as long as a mask at",
                    id: buffer.address as usize,
                });
            }
        }
        let masks = DeviceMasks { address: masks.address, stride: n_words, n_words, n_rows: sets.len() };
        let sets: Vec<Vec<u64>> = sets.iter().map(|row| row.iter().map(Buffer::address).collect()).collect();
        // SAFETY: all are buffers of this pool, which live as long as it, and they are as long as `masks`
        // says.
        unsafe { self.or_sets(masks, &sets) }
    }

    /// Adds to masks the union of token sets: to mask `i` those that lie at the addresses `sets[i]`, at most
    /// 64, each as long as a mask.
    ///
    /// # Safety
    /// `masks` and all sets have to describe memory of the device, masks such that can be written as long as
    /// work of this call is under way.
    #[allow(unsafe_code, reason = "addresses of the caller cannot be checked")]
    pub unsafe fn or_sets(&mut self, masks: DeviceMasks, sets: &[Vec<u64>]) -> Result<(), ChartError> {
        if sets.len() != masks.n_rows || sets.iter().any(|sets| sets.len() > MAX_ACCEPTED) {
            return Err(ChartError::Unknown { what: "place for token set", id: MAX_ACCEPTED });
        }
        let device = &mut *self.device;
        let rows = self.search.accepted.at_least(device, sets.len() * MAX_ACCEPTED * 2)?;
        let n_rows = self.search.n_accepted.at_least(device, sets.len())?;
        let mut words = vec![0; sets.len() * MAX_ACCEPTED * 2];
        for (row, sets) in words.chunks_exact_mut(2 * MAX_ACCEPTED).zip(sets) {
            let halves = sets.iter().flat_map(|&set| [set as u32, (set >> 32) as u32]);
            row.iter_mut().zip(halves).for_each(|(word, half)| *word = half);
        }
        device.write(&rows, 0, &words)?;
        device.write(&n_rows, 0, &sets.iter().map(|sets| sets.len() as u32).collect::<Vec<_>>())?;
        let launch = self.or_launch(masks, (rows.address, n_rows.address), (0, 0));
        Ok(self.device.run(&[launch])?)
    }

    /// Masks logits in place: row `i` by mask `i`; whatever has no bit becomes minus infinity.
    ///
    /// # Safety
    /// `masks` and `logits` have to describe memory of the device: `masks.n_rows` rows each, masks of at
    /// least `n_tokens` bits, logits of `n_columns` numbers that can be written as long as work of this call
    /// is under way.
    #[allow(unsafe_code, reason = "an address of the caller cannot be checked")]
    pub unsafe fn mask_logits(
        &mut self,
        masks: DeviceMasks,
        n_tokens: usize,
        logits: Logits,
    ) -> Result<(), ChartError> {
        let (bytes, minus_infinity) = match logits.of {
            LogitType::F32 => (4, f32::NEG_INFINITY.to_bits()),
            LogitType::F16 => (2, 0xfc00),
            LogitType::Bf16 => (2, 0xff80),
        };
        if masks.n_rows == 0 || logits.n_columns == 0 {
            return Ok(());
        }
        let params = LogitsParams {
            logits: logits.address,
            stride: logits.stride as u64,
            masks: masks.address,
            mask_stride: masks.stride as u64,
            n_columns: logits.n_columns as u32,
            n_tokens: n_tokens as u32,
            bytes,
            minus_infinity,
        };
        let blocks = (logits.n_columns as u32).div_ceil(self.options.threads).min(64);
        let blocks = (blocks, masks.n_rows as u32);
        let grid = Grid { blocks, threads: self.options.threads, shared_words: 0, is_cooperative: false };
        Ok(self.device.run(&[Launch { kernel: Kernel::MaskLogits, grid, params: words_of(&params) }])?)
    }
}
