"""Writes the built-in vocabulary, crates/vocab/src/builtin.json.

    python3 crates/vocab/tools/builtin.py            writes the file
    python3 crates/vocab/tools/builtin.py --check    exits with 1 if the file is not what this script would write

Deterministic: single bytes first, then the pieces in the order of the lists below (the first mention counts), then the
three special tokens EOS, PAD and MASK.
"""

import json
import pathlib
import sys

TARGET = pathlib.Path(__file__).resolve().parent.parent / "src" / "builtin.json"

# Each with a space in front, the most common ones also without.
WORDS = """
the of and to in is it that for on with as was at by an be this are from or his her had not but they you we she he all
were which their one there been has have when who will more no if out so said what up its about into than them can only
other new some could time these two may then do first any my now such like our over man me even most made after also did
many before must through back years where much your way well down should because each just those people how too little
state good very make world still see own work long here get both between life being under never day same another know
while last might us great old year off come since go against right used take three man house small number part high
water word words letter line end begin start stop left side open close white black red green blue big cat dog bird tree
fish sun moon home hand head eye face door road river sea light night day name age city color size type value list item
key text note date order price count total sum user email phone address street id title author book page school student
teacher course class grade team player game score song singer album stadium concert country language continent
population airport flight airline employee department salary manager company product shop store customer car maker model
weight horsepower battle ship bulk pet owner hello token tokens grammar sentence string model yes no true false null none
sees saw chased likes ate sleeps runs walks gives puts thinks says knows park telescope table chair garden king queen boy
girl child woman friend big quick brown fox jumps lazy every some any
""".split()

PIECES = """
ing ed er est ly ion tion ation ment ness able ible al ial ic ous ive ful less ity ies es en em un re de dis in im pre pro
con com ex ar or ur an on at it is as us os th ch sh wh qu st tr pr br cr gr fl cl pl sp sc ck ll ss ee oo ea ou ai ay ow
""".split()

SQL = """
SELECT FROM WHERE GROUP BY ORDER HAVING LIMIT JOIN ON AS AND OR NOT IN LIKE BETWEEN IS NULL COUNT SUM AVG MIN MAX DISTINCT
ASC DESC UNION INTERSECT EXCEPT INNER LEFT OUTER EXISTS CASE WHEN THEN ELSE END T1 T2 T3 INSERT INTO VALUES UPDATE SET
DELETE CREATE TABLE
""".split()

CODE = """
int char bool float double void long return if else for while do break continue const auto string vector size push_back
std main include begin end first second true false def class import from self lambda print len range let var function
""".split()

# Pieces that stand across the borders of terminals, or are one terminal made of several characters.
MARKS = [
    '":', '": ', '":"', '": "', '","', '", "', '",', '"}', '"},', '"},{"', '"],', '"]', '"]}', '{"', '[{"', '["', '[[', ']]',
    '],', '],[', '}}', '}]', '},', '},{', '}, {', '},{"', '[]', '{}', '""', '": {', '": [', '":{', '":[', '": true',
    '": false', '": null', '": 1', '": 0', ' "', ' {', ' [', ' }', ' ]', '\\"', '\\n', '\\\\', '\\u', '\\u00',
    '()', '((', '))', ')))', ' (', '( ', ' )', ') ', '),', '), ', ').', ');', ')+', ')*', ')-', ')/', '+(', '*(', '-(', '/(',
    '(1', '1)', '(2', '2)', '+1', '1+', '-1', '*2', '2*', ' + ', ' - ', ' * ', ' / ', ' = ', ' == ', ' < ', ' > ',
    '==', '!=', '<=', '>=', '<>', '&&', '||', '++', '--', '+=', '-=', '*=', '/=', '->', '=>', '::', '<<', '>>', ' +', ' -',
    ' *', ' /', ' =', ' ==', ' <', ' >', ' <=', ' >=', ' !=', ' &&', ' ||', '//', '/*', '*/', '# ', '= ', ' %', ' ;',
    ', ', '. ', '; ', ': ', '? ', '! ', '...', '.0', '.5', "'", " '", "'s", "' ", "',", "';", "')", "('", "=='", " = '",
    '.*', '(*)', 'COUNT(*)', ' COUNT(*)', ' count(*)', 'count(', ' MAX(', ' MIN(', ' AVG(', ' SUM(', '(DISTINCT',
    'SELECT *', ' FROM (', ' = T1.', ' AS T1', ' AS T2', ' JOIN ', ' T1.', ' T2.', ' GROUP BY', ' ORDER BY', 'NOT IN (',
    ');\n', ';\n', '{\n', '}\n', '}\n\n', ',\n', ':\n', ')\n', '\n\n', '\n\n\n', '  ', '    ', '        ', '\t\t', '\n  ',
    '\n    ', '\n        ', '\r\n', ' {\n', ') {', ') {\n', '() {', '();', '(); ', '++)', '; i', ' i', 'i++', 'i = 0',
    '[i', 'i]', '[0', '0]', '[i]', '[0]', '<int>', 'std::', '.size()', ' return ', 'for (', 'if (', 'while (',
    # Chemistry, as SMILES writes it.
    'CC', 'CCC', 'C(', 'C)', '(C', 'c1', 'c1c', 'ccc', 'cc', 'C1', '=O', '(=O)', '=C', 'O)', 'N(', '[C@', '[C@@H]', '[nH]',
    '[O-]', '[N+]', 'Cl', 'Br', 'c2', '2)', ')c', ')C', 'C(=O)',
]

CHARACTERS = "éèêàçñöäüßåøæłαβγδεπσωДавинеорст中文字人日本語のはですあい한국어–—‘’“”…•·°±×÷→←≤≥≠∞€£🙂🎉👍"

# First and last parts of characters: these tokens split one, or join the end of one to the start of another.
SPLITS = ["e4b8", "e4b8ad", "ade6", "e696", "8787", "e697a5e6", "9cac", "f09f", "f09f99", "9982", "f09f8e", "8e89", "c3a9c3",
          "c3a9", "20c3", "20e4", "22e4b8", "22f09f", "ad22", "e280", "8099", "8022", "d09fd1", "80d0"]


def pieces():
    for word in WORDS[:150] + PIECES + SQL + CODE:
        yield word.encode()
        yield b" " + word.encode()
    for word in WORDS[150:]:
        yield b" " + word.encode()
    for word in WORDS[:60]:
        yield word.capitalize().encode()
    for keyword in SQL[:25]:
        yield b" " + keyword.lower().encode()
    for mark in MARKS:
        yield mark.encode()
    for number in range(100):
        yield b"%02d" % number
    for year in (1990, 1995, 1999, 2000, 2001, 2010, 2014, 2015, 2020, 100, 1000):
        yield b"%d" % year
    for digit in range(10):
        yield b" %d" % digit
    for character in CHARACTERS:
        yield character.encode()
    for split in SPLITS:
        yield bytes.fromhex(split)


def element(token):
    try:
        text = token.decode()
    except UnicodeDecodeError:
        return {"hex": token.hex()}
    return text


def vocabulary():
    tokens = list(dict.fromkeys([bytes([byte]) for byte in range(256)] + list(pieces())))
    lines = [json.dumps(element(token), ensure_ascii=False) for token in tokens] + ["null"] * 3
    return "[\n" + ",\n".join(lines) + "\n]\n"


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        sys.exit(TARGET.read_text(encoding="utf-8") != vocabulary())
    TARGET.write_text(vocabulary(), encoding="utf-8", newline="\n")
    print(f"{TARGET}: {len(json.loads(vocabulary()))} tokens")
