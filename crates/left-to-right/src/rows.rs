//! Rows of a buffer into which masks are written: a tensor of bitmasks, as servers hold it for a batch.

/// Where the masks of several outputs go: rows of a buffer of 32-bit words.
///
/// Row `i` begins at word `i * stride` and its first `width` words are its mask; what stands between two rows
/// is left as it is. A mask that is narrower than its row is continued with zeros: ids that only the padding
/// of a model has are never allowed. Of a mask that is wider the words behind the row are dropped.
///
/// ```
/// use anygram_left_to_right::MaskRows;
///
/// let mut words = vec![7; 12];
/// let mut rows = MaskRows::new(&mut words, 4).with_width(3);
/// assert_eq!((rows.len(), rows.width()), (3, 3));
/// rows.iter_mut().for_each(|row| row.fill(0));
/// assert_eq!(words, [0, 0, 0, 7, 0, 0, 0, 7, 0, 0, 0, 7]);
/// ```
#[derive(Debug)]
pub struct MaskRows<'a> {
    words: &'a mut [u32],
    stride: usize,
    width: usize,
}

impl<'a> MaskRows<'a> {
    /// Rows that begin every `stride` words, and are as wide. Words behind the last whole row are not used.
    pub fn new(words: &'a mut [u32], stride: usize) -> Self {
        Self { words, stride, width: stride }
    }

    /// The same rows, of which only the first `width` words are written; at most the stride.
    pub fn with_width(self, width: usize) -> Self {
        Self { width: width.min(self.stride), ..self }
    }

    /// The number of rows. The last may lack what stands between two rows.
    pub fn len(&self) -> usize {
        let step = self.step();
        let whole = self.words.len() / step;
        whole + usize::from(self.width > 0 && self.words.len() % step >= self.width)
    }

    /// Rows without a word stand one word apart.
    fn step(&self) -> usize {
        self.stride.max(1)
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The words of a row that are written.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The words of each row that are written.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut [u32]> {
        let (n_rows, width, step) = (self.len(), self.width, self.step());
        self.words.chunks_mut(step).take(n_rows).map(move |row| &mut row[..width])
    }
}
