//! What Unicode says of the characters of host names, as far as `regex-syntax` has no tables of it; each to
//! stand in a class.
//!
//! Generated from the Unicode Character Database 18.0 by way of Python's `unicodedata2` and `idna`: general
//! categories, normalization, joining types, bidirectional and combining classes. Ranges run across
//! characters that no name may have.

/// Letters, digits and marks that compatibility composition with case folding changes, or that are exceptions
/// (RFC 5892, sections 2.2 and 2.6), but for those that case folding alone changes.
pub(super) const UNSTABLE: &str = concat!(
    r"\u{aa}\u{ba}\u{133}\u{140}\u{1c6}-\u{1cc}\u{1f3}\u{2b0}-\u{2b8}\u{2e0}-\u{2e4}\u{340}-\u{341}",
    r"\u{343}-\u{344}\u{34f}\u{374}\u{37a}\u{3d2}-\u{3d4}\u{3f2}\u{558}\u{58b}-\u{58c}\u{640}",
    r"\u{675}-\u{678}\u{7fa}\u{958}-\u{95f}\u{9dc}-\u{9dd}\u{9df}\u{a33}\u{a36}\u{a59}-\u{a5b}\u{a5e}",
    r"\u{b5c}-\u{b5d}\u{e33}\u{eb3}\u{edc}-\u{edd}\u{f43}\u{f4d}\u{f52}\u{f57}\u{f5c}\u{f69}\u{f73}",
    r"\u{f75}-\u{f79}\u{f81}\u{f93}\u{f9d}\u{fa2}\u{fa7}\u{fac}\u{fb9}\u{10fc}\u{17b4}-\u{17b5}",
    r"\u{180b}-\u{180f}\u{1c89}\u{1d2c}-\u{1d2e}\u{1d30}-\u{1d3a}\u{1d3c}-\u{1d4d}\u{1d4f}-\u{1d6a}",
    r"\u{1d78}\u{1d9b}-\u{1dbf}\u{1f71}\u{1f73}\u{1f75}\u{1f77}\u{1f79}\u{1f7b}\u{1f7d}\u{1fbe}\u{1fd3}",
    r"\u{1fe3}\u{2071}\u{207f}\u{2090}-\u{209f}\u{2102}-\u{2149}\u{2c7c}-\u{2c7d}\u{2d6f}",
    r"\u{302e}-\u{303b}\u{309f}\u{30ff}\u{3131}-\u{318e}\u{a69c}-\u{a69d}\u{a770}\u{a7cb}-\u{a7cc}",
    r"\u{a7ce}\u{a7d2}\u{a7d4}\u{a7da}\u{a7dc}-\u{a7dd}\u{a7e2}\u{a7f1}-\u{a7f4}\u{a7f8}-\u{a7f9}",
    r"\u{ab5c}-\u{ab5f}\u{ab69}-\u{ab6d}\u{f900}-\u{fa0d}\u{fa10}\u{fa12}\u{fa15}-\u{fa1e}\u{fa20}",
    r"\u{fa22}\u{fa25}-\u{fa26}\u{fa2a}-\u{fa6d}\u{fa70}-\u{fad9}\u{fb1d}\u{fb1f}-\u{fb36}",
    r"\u{fb38}-\u{fb3c}\u{fb3e}\u{fb40}-\u{fb41}\u{fb43}-\u{fb44}\u{fb46}-\u{fdc7}\u{fdf0}-\u{fe0f}",
    r"\u{fe70}-\u{fe72}\u{fe74}\u{fe76}-\u{fefc}\u{ff10}-\u{ffbe}\u{ffc2}-\u{ffc7}\u{ffca}-\u{ffcf}",
    r"\u{ffd2}-\u{ffd7}\u{ffda}-\u{ffdc}\u{10781}-\u{10785}\u{10787}-\u{107b0}\u{107b2}-\u{107bf}",
    r"\u{10d50}-\u{10d65}\u{16ea0}-\u{16eb8}\u{1b123}-\u{1b126}\u{1ccf0}-\u{1ccf9}\u{1d400}-\u{1d454}",
    r"\u{1d456}-\u{1d49c}\u{1d49e}-\u{1d49f}\u{1d4a2}\u{1d4a5}-\u{1d4a6}\u{1d4a9}-\u{1d4ac}",
    r"\u{1d4ae}-\u{1d4b9}\u{1d4bb}\u{1d4bd}-\u{1d4c3}\u{1d4c5}-\u{1d505}\u{1d507}-\u{1d50a}",
    r"\u{1d50d}-\u{1d514}\u{1d516}-\u{1d51c}\u{1d51e}-\u{1d539}\u{1d53b}-\u{1d53e}\u{1d540}-\u{1d544}",
    r"\u{1d546}\u{1d54a}-\u{1d550}\u{1d552}-\u{1d6a6}\u{1d6a8}-\u{1d7cb}\u{1d7ce}-\u{1d7ff}\u{1df40}",
    r"\u{1df48}\u{1df4a}\u{1df4d}\u{1df51}\u{1df68}\u{1df6a}\u{1df6c}\u{1df6e}\u{1df72}\u{1df74}",
    r"\u{1df76}\u{1df78}\u{1df7a}\u{1df7c}\u{1df7e}\u{1df95}\u{1dfcd}-\u{1dfff}\u{1e030}-\u{1e06d}",
    r"\u{1ee00}-\u{1ee03}\u{1ee05}-\u{1ee1f}\u{1ee21}-\u{1ee22}\u{1ee24}\u{1ee27}\u{1ee29}-\u{1ee32}",
    r"\u{1ee34}-\u{1ee37}\u{1ee39}\u{1ee3b}\u{1ee42}\u{1ee47}\u{1ee49}\u{1ee4b}\u{1ee4d}-\u{1ee4f}",
    r"\u{1ee51}-\u{1ee52}\u{1ee54}\u{1ee57}\u{1ee59}\u{1ee5b}\u{1ee5d}\u{1ee5f}\u{1ee61}-\u{1ee62}",
    r"\u{1ee64}\u{1ee67}-\u{1ee6a}\u{1ee6c}-\u{1ee72}\u{1ee74}-\u{1ee77}\u{1ee79}-\u{1ee7c}\u{1ee7e}",
    r"\u{1ee80}-\u{1ee89}\u{1ee8b}-\u{1ee9b}\u{1eea1}-\u{1eea3}\u{1eea5}-\u{1eea9}\u{1eeab}-\u{1eebb}",
    r"\u{1fbf0}-\u{1fbf9}\u{2f800}-\u{2fa1d}\u{e0100}-\u{e01ef}",
);

/// Canonical_Combining_Class 9.
pub(super) const VIRAMA: &str = concat!(
    r"\u{94d}\u{9cd}\u{a4d}\u{acd}\u{b4d}\u{bcd}\u{c4d}\u{ccd}\u{d3b}-\u{d3c}\u{d4d}\u{dca}\u{e3a}",
    r"\u{eba}\u{f84}\u{1039}-\u{103a}\u{1714}-\u{1715}\u{1734}\u{17d2}\u{1a60}\u{1b44}\u{1baa}-\u{1bab}",
    r"\u{1bf2}-\u{1bf3}\u{2d7f}\u{a806}\u{a82c}\u{a8c4}\u{a953}\u{a9c0}\u{aaf6}\u{abed}\u{10a3f}",
    r"\u{11046}\u{11070}\u{1107f}\u{110b9}\u{11133}-\u{11134}\u{111c0}\u{11235}\u{112ea}\u{1134d}",
    r"\u{113ce}-\u{113d0}\u{11442}\u{114c2}\u{115bf}\u{1163f}\u{116b6}\u{1172b}\u{11839}",
    r"\u{1193d}-\u{1193e}\u{119e0}\u{11a34}\u{11a47}\u{11a99}\u{11c3f}\u{11d44}-\u{11d45}\u{11d97}",
    r"\u{11f41}-\u{11f42}\u{1612f}",
);

/// Joining_Type L or D.
pub(super) const JOINS_LEFT: &str = concat!(
    r"\u{a872}\u{10acd}\u{10ad7}\u{10d00}\u{10ed9}-\u{10eee}\u{620}\u{626}\u{628}\u{62a}-\u{62e}",
    r"\u{633}-\u{647}\u{649}-\u{64a}\u{66e}-\u{66f}\u{679}-\u{687}\u{69a}-\u{6bf}\u{6c1}-\u{6c2}\u{6cc}",
    r"\u{6ce}\u{6d0}-\u{6d1}\u{6fa}-\u{6fc}\u{6ff}\u{712}-\u{714}\u{71a}-\u{71d}\u{71f}-\u{727}\u{729}",
    r"\u{72b}\u{72d}-\u{72e}\u{74e}-\u{758}\u{75c}-\u{76a}\u{76d}-\u{770}\u{772}\u{775}-\u{777}",
    r"\u{77a}-\u{77f}\u{7ca}-\u{7ea}\u{841}-\u{845}\u{848}\u{84a}-\u{853}\u{855}\u{860}\u{862}-\u{865}",
    r"\u{868}\u{886}\u{889}-\u{88d}\u{88f}\u{8a0}-\u{8a9}\u{8af}-\u{8b0}\u{8b3}-\u{8b8}\u{8ba}-\u{8c8}",
    r"\u{1820}-\u{1878}\u{1887}-\u{18a8}\u{18aa}\u{a840}-\u{a871}\u{10ac0}-\u{10ac4}\u{10ad3}-\u{10ad6}",
    r"\u{10ad8}-\u{10adc}\u{10ade}-\u{10ae0}\u{10b80}\u{10b82}\u{10b86}-\u{10b88}\u{10b8a}-\u{10b8b}",
    r"\u{10b8d}\u{10b90}\u{10d01}-\u{10d21}\u{10d23}\u{10ec3}-\u{10ec4}\u{10ec6}-\u{10ec7}",
    r"\u{10f30}-\u{10f32}\u{10f34}-\u{10f44}\u{10f70}-\u{10f73}\u{10f76}-\u{10f81}\u{10fb0}",
    r"\u{10fb2}-\u{10fb3}\u{10fb8}\u{10fbb}-\u{10fbc}\u{10fbe}-\u{10fbf}\u{10fc1}\u{10fc4}",
    r"\u{1e922}-\u{1e943}",
);

/// Joining_Type R or D.
pub(super) const JOINS_RIGHT: &str = concat!(
    r"\u{622}-\u{625}\u{627}\u{629}\u{62f}-\u{632}\u{648}\u{671}-\u{673}\u{688}-\u{699}\u{6c0}",
    r"\u{6c3}-\u{6cb}\u{6cd}\u{6cf}\u{6d2}-\u{6d5}\u{6ee}-\u{6ef}\u{710}\u{715}-\u{719}\u{71e}\u{728}",
    r"\u{72a}\u{72c}\u{72f}\u{74d}\u{759}-\u{75b}\u{76b}-\u{76c}\u{771}\u{773}-\u{774}\u{778}-\u{779}",
    r"\u{840}\u{846}-\u{847}\u{849}\u{854}\u{856}-\u{858}\u{867}\u{869}-\u{86a}\u{870}-\u{882}\u{88e}",
    r"\u{8aa}-\u{8ac}\u{8ae}\u{8b1}-\u{8b2}\u{8b9}\u{10ac5}\u{10ac7}-\u{10aca}\u{10ace}-\u{10ad2}",
    r"\u{10add}\u{10ae1}\u{10ae4}\u{10b81}\u{10b83}-\u{10b85}\u{10b89}\u{10b8c}\u{10b8e}-\u{10b8f}",
    r"\u{10b91}\u{10d22}\u{10ec2}\u{10f33}\u{10f74}-\u{10f75}\u{10fb4}-\u{10fb6}\u{10fb9}-\u{10fba}",
    r"\u{10fbd}\u{10fc2}-\u{10fc3}\u{620}\u{626}\u{628}\u{62a}-\u{62e}\u{633}-\u{647}\u{649}-\u{64a}",
    r"\u{66e}-\u{66f}\u{679}-\u{687}\u{69a}-\u{6bf}\u{6c1}-\u{6c2}\u{6cc}\u{6ce}\u{6d0}-\u{6d1}",
    r"\u{6fa}-\u{6fc}\u{6ff}\u{712}-\u{714}\u{71a}-\u{71d}\u{71f}-\u{727}\u{729}\u{72b}\u{72d}-\u{72e}",
    r"\u{74e}-\u{758}\u{75c}-\u{76a}\u{76d}-\u{770}\u{772}\u{775}-\u{777}\u{77a}-\u{77f}\u{7ca}-\u{7ea}",
    r"\u{841}-\u{845}\u{848}\u{84a}-\u{853}\u{855}\u{860}\u{862}-\u{865}\u{868}\u{886}\u{889}-\u{88d}",
    r"\u{88f}\u{8a0}-\u{8a9}\u{8af}-\u{8b0}\u{8b3}-\u{8b8}\u{8ba}-\u{8c8}\u{1820}-\u{1878}",
    r"\u{1887}-\u{18a8}\u{18aa}\u{a840}-\u{a871}\u{10ac0}-\u{10ac4}\u{10ad3}-\u{10ad6}",
    r"\u{10ad8}-\u{10adc}\u{10ade}-\u{10ae0}\u{10b80}\u{10b82}\u{10b86}-\u{10b88}\u{10b8a}-\u{10b8b}",
    r"\u{10b8d}\u{10b90}\u{10d01}-\u{10d21}\u{10d23}\u{10ec3}-\u{10ec4}\u{10ec6}-\u{10ec7}",
    r"\u{10f30}-\u{10f32}\u{10f34}-\u{10f44}\u{10f70}-\u{10f73}\u{10f76}-\u{10f81}\u{10fb0}",
    r"\u{10fb2}-\u{10fb3}\u{10fb8}\u{10fbb}-\u{10fbc}\u{10fbe}-\u{10fbf}\u{10fc1}\u{10fc4}",
    r"\u{1e922}-\u{1e943}",
);

/// Bidi_Class R or AL.
pub(super) const RIGHT_TO_LEFT: &str = concat!(
    r"\u{5d0}-\u{5ea}\u{5ef}-\u{5f4}\u{7c0}-\u{7ea}\u{7f4}-\u{7f5}\u{800}-\u{815}\u{81a}\u{824}\u{828}",
    r"\u{840}-\u{858}\u{10800}-\u{10805}\u{10808}\u{1080a}-\u{10835}\u{10837}-\u{10838}\u{1083c}",
    r"\u{1083f}-\u{10855}\u{10860}-\u{1089e}\u{108e0}-\u{108f2}\u{108f4}-\u{108f5}\u{10900}-\u{10915}",
    r"\u{10920}-\u{10939}\u{10940}-\u{10959}\u{10980}-\u{109b7}\u{109be}-\u{109bf}\u{10a00}",
    r"\u{10a10}-\u{10a13}\u{10a15}-\u{10a17}\u{10a19}-\u{10a35}\u{10a60}-\u{10a9c}\u{10ac0}-\u{10ae4}",
    r"\u{10b00}-\u{10b35}\u{10b40}-\u{10b55}\u{10b60}-\u{10b72}\u{10b80}-\u{10b91}\u{10c00}-\u{10c48}",
    r"\u{10cc0}-\u{10cf2}\u{10d4a}-\u{10d4f}\u{10d6f}-\u{10d85}\u{10e80}-\u{10ea9}\u{10eb0}-\u{10eb1}",
    r"\u{10f00}-\u{10f27}\u{10f70}-\u{10f81}\u{10fb0}-\u{10fc4}\u{10fe0}-\u{10ff6}\u{1e800}-\u{1e8c4}",
    r"\u{1e922}-\u{1e943}\u{1e94b}\u{1e950}-\u{1e959}\u{620}-\u{64a}\u{66e}-\u{66f}\u{671}-\u{6d5}",
    r"\u{6e5}-\u{6e6}\u{6ee}-\u{6ef}\u{6fa}-\u{6ff}\u{710}\u{712}-\u{72f}\u{74d}-\u{7a5}\u{7b1}",
    r"\u{860}-\u{86a}\u{870}-\u{88f}\u{8a0}-\u{8c9}\u{fe73}\u{10d00}-\u{10d23}\u{10ec2}-\u{10ec7}",
    r"\u{10ed9}-\u{10eee}\u{10f30}-\u{10f45}",
);

/// Bidi_Class AN.
pub(super) const ARABIC_NUMBER: &str = r"\u{660}-\u{669}\u{10d30}-\u{10d39}\u{10d40}-\u{10d49}";

/// Bidi_Class ON.
pub(super) const OTHER_NEUTRAL: &str = concat!(
    r"\u{b7}\u{2b9}-\u{2ba}\u{2c6}-\u{2cf}\u{2ec}\u{375}\u{208f}\u{2e2f}\u{30fb}\u{a67f}",
    r"\u{a717}-\u{a71f}\u{a788}",
);
