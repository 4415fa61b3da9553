//! Properties of a molecule in words to a molecule, in a small part of SMILES: chains, branches, rings of
//! five and six, aromatic rings.
//!
//! Molecules are drawn, and a prompt lists what the drawn one has, from left to right: its rings, its atoms
//! other than carbon, and the double bonds that are written. Every molecule with just these is right, in
//! whatever order, so there are many answers. Hydrogen is implied.

use super::{Wanted, pick};
use anygram_bits::Random;

/// What a prompt asks for, in the order in which a molecule was read.
#[derive(Clone, Debug)]
pub(super) struct Properties(Vec<Property>);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Property {
    Ring {
        size: usize,
        aromatic: bool,
    },
    /// Not carbon.
    Atom(Element),
    /// A bond that is written `=`.
    DoubleBond,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Element {
    Carbon,
    Nitrogen,
    Oxygen,
    Sulfur,
    Fluorine,
    Chlorine,
}

struct Atom {
    element: Element,
    aromatic: bool,
    /// The atom that it hangs on, and how many are between it and the first.
    parent: usize,
    depth: usize,
    /// Twice the sum of the orders of its bonds; an aromatic one is of order 3/2.
    bonds: u32,
}

/// The longest molecule that is asked for, in bytes.
const LONGEST: usize = 32;

pub(super) fn example(random: &mut Random) -> (String, String, Wanted) {
    loop {
        let molecule = draw(random);
        // Whatever was drawn with too many bonds, or rings of another kind, is drawn again; a third of the
        // draws is.
        let properties = Properties::of(&molecule).filter(|properties| properties.is_wanted());
        if let Some(properties) = properties.filter(|_| molecule.len() <= LONGEST) {
            return (properties.in_words(), molecule, Wanted::Smiles(properties));
        }
    }
}

/// What a prompt does not tell apart is drawn in one form most of the time: an atom in the chain, `C=O` for a
/// double bond and an O, rings of carbon with nothing on them. So a prompt has one answer that is most
/// likely.
fn draw(random: &mut Random) -> String {
    let mut text = String::new();
    let n_units = 2 + random.below(4);
    let mut n_rings = 0;
    for unit in 0..n_units {
        if n_rings < 2 && random.chance(if n_rings == 0 { 25 } else { 10 }) {
            n_rings += 1;
            ring(random, &mut text);
        } else if random.chance(20) {
            // Some atoms hang on the chain: halogens always, the others seldom.
            let hangs = pick(random, &["F", "Cl", "F", "Cl", "O", "N", "CO", "C#N"]);
            if unit + 1 < n_units {
                text.push_str(&format!("C({hangs})"));
            } else {
                text.push_str(&format!("C{hangs}"));
            }
        } else {
            text.push_str(pick(
                random,
                &["CO", "CO", "CO", "CN", "CN", "CN", "CS", "CS", "C=C", "C=N", "C(=O)", "C(=O)", "CC"],
            ));
        }
    }
    // A chain does not end with a branch.
    if let Some(end) = text.strip_suffix("C(=O)") {
        text = format!("{end}C=O");
    }
    text
}

/// A ring of digit 1, with what hangs on it.
fn ring(random: &mut Random, text: &mut String) {
    let (size, atoms) =
        [(5, ["C", "N", "O"]), (6, ["C", "N", "O"]), (6, ["c", "n", "n"]), (6, ["c", "n", "n"])]
            [random.below(4)];
    let special = if random.chance(15) { 1 + random.below(size - 1) } else { 0 };
    text.push_str(atoms[0]);
    text.push('1');
    for at in 1..size {
        text.push_str(if at == special { atoms[1 + random.below(2)] } else { atoms[0] });
        if at + 1 == size {
            text.push('1');
        }
        if at != special && at % 2 == 1 && random.chance(6) {
            let inner = pick(random, &["C2CCCC2", "c2ccccc2", "C2CCCCC2"]);
            let hangs = pick(random, &["F", "Cl", "O", "N", inner]);
            text.push_str(&format!("({hangs})"));
        }
    }
}

impl Properties {
    /// Of a molecule; `None` if it is not one, or an atom has more bonds than its valence.
    pub fn of(text: &str) -> Option<Self> {
        let mut reader = Reader::default();
        let mut bytes = text.bytes().peekable();
        while let Some(byte) = bytes.next() {
            match byte {
                b'(' => reader.open()?,
                b')' => reader.close()?,
                b'=' | b'#' if !reader.atoms.is_empty() && reader.bond.is_none() => {
                    reader.bond = Some(if byte == b'=' { 4 } else { 6 });
                    if byte == b'=' {
                        reader.properties.push(Property::DoubleBond);
                    }
                }
                b'1'..=b'9' => reader.ring(usize::from(byte - b'0'))?,
                b'C' if bytes.next_if_eq(&b'l').is_some() => reader.atom(Element::Chlorine, false),
                _ => {
                    let element = match byte.to_ascii_uppercase() {
                        b'C' => Element::Carbon,
                        b'N' => Element::Nitrogen,
                        b'O' => Element::Oxygen,
                        b'S' => Element::Sulfur,
                        b'F' => Element::Fluorine,
                        _ => return None,
                    };
                    reader.atom(element, byte.is_ascii_lowercase());
                }
            }
        }
        reader.finish()
    }

    /// Whether a prompt would ask for it.
    fn is_wanted(&self) -> bool {
        self.0.iter().all(|property| property.name().is_some())
    }

    fn in_words(&self) -> String {
        if self.0.is_empty() {
            return "chain".to_owned();
        }
        let words: Vec<&str> = self.0.iter().filter_map(|property| property.name()).collect();
        words.join(", ")
    }
}

/// In whatever order.
impl PartialEq for Properties {
    fn eq(&self, other: &Self) -> bool {
        let sorted = |properties: &Self| {
            let mut properties = properties.0.clone();
            properties.sort_unstable();
            properties
        };
        sorted(self) == sorted(other)
    }
}

impl Property {
    /// As a prompt says it; `None` of rings that are not asked for.
    fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::Ring { size: 5, aromatic: false } => "five ring",
            Self::Ring { size: 6, aromatic: false } => "six ring",
            Self::Ring { size: 6, aromatic: true } => "aromatic ring",
            Self::Ring { .. } => return None,
            Self::Atom(element) => element.symbol(),
            Self::DoubleBond => "double bond",
        })
    }
}

impl Element {
    fn symbol(self) -> &'static str {
        match self {
            Self::Carbon => "C",
            Self::Nitrogen => "N",
            Self::Oxygen => "O",
            Self::Sulfur => "S",
            Self::Fluorine => "F",
            Self::Chlorine => "Cl",
        }
    }

    fn valence(self) -> u32 {
        match self {
            Self::Carbon => 4,
            Self::Nitrogen => 3,
            Self::Oxygen | Self::Sulfur => 2,
            Self::Fluorine | Self::Chlorine => 1,
        }
    }
}

/// A molecule as far as it is read.
#[derive(Default)]
struct Reader {
    atoms: Vec<Atom>,
    /// The atom that the next one hangs on; none at the start.
    last: Option<usize>,
    /// Twice the order of the bond that was written last, if no atom came since.
    bond: Option<u32>,
    /// The atoms on which the open branches hang.
    open: Vec<usize>,
    /// By digit: the atom of a ring that is open, and the place of the ring in `properties`.
    digits: [Option<(usize, usize)>; 10],
    /// Rings stand where they open.
    properties: Vec<Property>,
}

impl Reader {
    fn atom(&mut self, element: Element, aromatic: bool) {
        let (at, parent) = (self.atoms.len(), self.last);
        let depth = parent.map_or(0, |parent| self.atoms[parent].depth + 1);
        self.atoms.push(Atom { element, aromatic, parent: parent.unwrap_or(at), depth, bonds: 0 });
        if element != Element::Carbon {
            self.properties.push(Property::Atom(element));
        }
        if let Some(parent) = parent {
            self.join(parent, at);
        }
        self.last = Some(at);
    }

    fn join(&mut self, left: usize, right: usize) {
        let single = if self.atoms[left].aromatic && self.atoms[right].aromatic { 3 } else { 2 };
        let order = self.bond.take().unwrap_or(single);
        self.atoms[left].bonds += order;
        self.atoms[right].bonds += order;
    }

    fn open(&mut self) -> Option<()> {
        self.open.push(self.last.filter(|_| self.bond.is_none())?);
        Some(())
    }

    fn close(&mut self) -> Option<()> {
        let from = self.open.pop().filter(|&from| self.bond.is_none() && self.last != Some(from))?;
        self.last = Some(from);
        Some(())
    }

    fn ring(&mut self, digit: usize) -> Option<()> {
        let last = self.last?;
        match self.digits[digit].take() {
            None => {
                self.digits[digit] = Some((last, self.properties.len()));
                self.properties.push(Property::Ring { size: 0, aromatic: false });
            }
            Some((first, place)) => {
                let path = self.path(first, last);
                // Rings of one or two atoms are none.
                if path.len() < 3 {
                    return None;
                }
                let aromatic = path.iter().all(|&atom| self.atoms[atom].aromatic);
                self.properties[place] = Property::Ring { size: path.len(), aromatic };
                self.join(first, last);
            }
        }
        Some(())
    }

    /// The atoms on the way from one to another, both included.
    fn path(&self, mut left: usize, mut right: usize) -> Vec<usize> {
        let mut path = Vec::new();
        while left != right {
            let deeper =
                if self.atoms[left].depth >= self.atoms[right].depth { &mut left } else { &mut right };
            path.push(*deeper);
            *deeper = self.atoms[*deeper].parent;
        }
        path.push(left);
        path
    }

    fn finish(self) -> Option<Properties> {
        let closed = self.open.is_empty() && self.bond.is_none() && self.digits.iter().all(Option::is_none);
        let fits = |atom: &Atom| atom.bonds <= 2 * atom.element.valence();
        if !closed || self.atoms.is_empty() || !self.atoms.iter().all(fits) {
            return None;
        }
        Some(Properties(self.properties))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn molecules_have_properties() {
        let of = |text| Properties::of(text).map(|properties| properties.in_words());
        assert_eq!(of("c1ccc(O)cc1").unwrap(), "aromatic ring, O");
        assert_eq!(of("CC(=O)N").unwrap(), "double bond, O, N");
        assert_eq!(of("C1CCC(C2CCCC2)C1Cl").unwrap(), "five ring, five ring, Cl");
        assert_eq!(of("C1CC(=O)CCC1c1ccncc1").unwrap(), "six ring, double bond, O, aromatic ring, N");
        assert_eq!(of("C").unwrap(), "chain");
    }

    #[test]
    fn what_is_no_molecule_has_none() {
        for wrong in [
            "",
            "(C)",
            "C(",
            "C)",
            "C()",
            "C1CC",
            "C11",
            "C1C1",
            "=C",
            "C=",
            "C==C",
            "C(=O)(=O)C",
            "FC(F)(F)(F)F",
            "O=O=O",
            "CX",
            "C(=)C",
        ] {
            assert!(Properties::of(wrong).is_none(), "{wrong}");
        }
    }
}
