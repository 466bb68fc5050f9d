//! What is GBNF and what isn't, in small cases: leniency, limits, and grammars made to hurt.

use std::time::{Duration, Instant};

use maskwright::Fault;
use maskwright::constraint::gbnf::{Lowered, RuleFate};

use super::engine::{Words, lower};

/// Grammar, kind, line, column.
const REFUSED: &[(&str, &str, usize, usize)] = &[
    ("root ::= \"a\"\n\nroot ::= \"b\"\n", "duplicate_rule", 3, 1),
    ("root ::= \"a\" root\n", "empty_language", 1, 1),
    ("root ::= [z-a]\n", "empty_language", 1, 1),
    ("root ::= root\n", "empty_language", 1, 1),
    ("root ::= \"\\x00\"\n", "invalid_codepoint", 1, 11),
    ("root ::= [\\x00]\n", "invalid_codepoint", 1, 11),
    ("root ::= \"\\U00110000\"\n", "invalid_codepoint", 1, 11),
    ("root ::= [\\uDFFF]\n", "invalid_codepoint", 1, 11),
    ("root ::= \"a\0\"\n", "invalid_codepoint", 1, 12),
    ("root ::= \"a\"{0}+\n", "dangling_repeat", 1, 16),
    ("root ::= []*\n", "dangling_repeat", 1, 12),
    ("root ::= | *\n", "dangling_repeat", 1, 12),
    ("| \"a\"\nroot ::= \"a\"\n", "expected_name", 1, 1),
    ("root ::= \"a\"\r\nb ::= \"é\" ;\r\n", "expected_newline", 2, 11),
    ("root ::= \"a\"\rb := \"b\"", "expected_define", 2, 3),
    ("root ::= \"a\"{99999999999999999999}\n", "repeat_too_large", 1, 14),
    ("root ::= \"ab\"{100000}{100000}\n", "repeat_too_large", 1, 22),
    ("root ::= <[4294967296]>\n", "token_id_too_big", 1, 12),
    ("root ::= (\"a\" # )\n", "expected_rparen", 2, 1),
    // A token of ordinary text, and text, at the same place: the engine can't follow both.
    ("root ::= !<[5]> | \"a\" \"b\"\n", "token_overlap", 1, 10),
    ("root ::= \"a\"+ !<[5]>\n", "token_overlap", 1, 15),
];

#[test]
fn a_slip_is_reported_where_it_is() {
    for &(grammar, kind, line, column) in REFUSED {
        let error = lower(grammar).expect_err(grammar);
        let place = (error.place.line, error.place.column);
        assert_eq!((error.kind.name(), place), (kind, (line, column)), "{grammar:?}: {error}");
        assert!(error.to_string().starts_with(&format!("{line}:{column}: ")), "{error}");
    }
}

/// Grammar, texts that match, texts that don't.
const ACCEPTED: &[(&str, &[&str], &[&str])] = &[
    ("\u{FEFF}root ::= \"a\"", &["a"], &[""]),
    ("root ::= a_b\na_b ::= \"x\"", &["x"], &[""]),
    (
        "root ::= \"a\"\n# comment\n\n  | \"b\" # more\n  |\n \"c\"\nb ::= \"b\"\n",
        &["a", "b", "c"],
        &["", "ab"],
    ),
    ("root ::= (\"a\"*)* (\"b\"?)+ (\"\")*", &["", "aab"], &["ba"]),
    ("root ::= root root | \"a\" | \"\"", &["", "a", "aaaa"], &["b"]),
    ("root ::= \"(\" root \")\" root | \"x\"", &["x", "(x)x", "((x)x)(x)x"], &["(x)", ""]),
    (
        "root ::= n root \"y\" | \"x\"\nn ::= m\nm ::= \"\" | \"k\"",
        &["x", "xy", "kxyy", "kkxyy"],
        &["kx", "y"],
    ),
    ("root ::= e\ne ::= e \"+\" t | t\nt ::= \"(\" e \")\" | [0-9]+", &["1", "1+2+(3+4)"], &["1+", "(1"]),
    ("root ::= e\ne ::= e \"+\" e | e \"*\" e | \"-\" e | [0-9]", &["1", "-1+2*-3"], &["1+", "+1"]),
    (
        "root ::= \"x\" a\na ::= \"a\" b | \"\"\nb ::= \"b\" c | \"!\"\nc ::= \"c\" a | a",
        &["x", "xabcab", "xab", "xa!"],
        &["xa"],
    ),
    ("root ::= \"a\"{0}\"b\"{2}[^]\"\"", &["bb"], &["abb"]),
    ("root ::= \"a\"{1,3000}", &["a"], &[""]),
    ("root ::= [\\--/]+ [a^] [\\]-_]", &["-./a^", "-^]"], &["-a`"]),
    ("root ::= [^\\x00-\\x60b-\\U0010FFFF]", &["a"], &["b", "`"]),
    ("root ::= (\n\"a\"\n*\n{\n1\n,\n2\n}\n)", &["", "aa"], &["b"]),
];

#[test]
fn what_can_only_mean_one_thing_is_read() {
    let words = Words::new(&[], &[]);
    for &(grammar, accept, reject) in ACCEPTED {
        let lowered = lower(grammar).unwrap_or_else(|error| panic!("{grammar}: {error}"));
        for (texts, expected) in [(accept, true), (reject, false)] {
            for text in texts {
                assert_eq!(words.accepts(&lowered, text), expected, "{grammar}\n{text:?}\n{}", lowered.lark);
            }
        }
    }
}

#[test]
fn repetition_written_as_recursion_costs_no_open_items() {
    // The engine stops at 2,000 open items; these have one for each character if left as they are.
    let cases = [
        "root ::= \"[\" ws \"]\"\nws ::= ([ \\t] ws)?",
        "root ::= \"[\" a \"]\"\na ::= \" \" b | \"\"\nb ::= \"\\t\" a | a",
        "root ::= \"[\" a \"]\" | \"(\" root \")\"\na ::= a \" \" | \"\"",
    ];
    let words = Words::new(&[], &[]);
    let text = format!("[{}]", " ".repeat(5_000));
    for grammar in cases {
        assert!(words.accepts(&lower(grammar).unwrap(), &text), "{grammar}");
    }
}

#[test]
fn stretches_stay_together_where_the_longest_match_is_right() {
    let grammar = r#"
root ::= value
value ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x00-\x1F] | "\\" ["\\bfnrt/] )* "\"" ws
number ::= "-"? ([0-9] | [1-9] [0-9]*) ("." [0-9]+)? ws
ws ::= [ \t\n]*
"#;
    let explanation = lower(grammar).unwrap().explanation;
    assert!(explanation.terminals.len() <= 12, "{explanation}");
    assert!(
        explanation
            .terminals
            .iter()
            .any(|terminal| terminal.regex.contains("true") && terminal.regex.contains("x{2D}"))
    );
    assert!(matches!(
        explanation.rules.iter().find(|rule| rule.name == "ws").unwrap().fate,
        RuleFate::Regular(_)
    ));
    let splits: Vec<&str> = explanation.splits.iter().map(|split| split.regex.as_str()).collect();
    assert!(splits.len() <= 3, "{splits:?}");
}

fn timed(what: &str, grammar: &str) -> Result<Lowered, String> {
    let start = Instant::now();
    let lowered = lower(grammar);
    let took = start.elapsed();
    assert!(took < Duration::from_secs(5), "{what} took {took:?}");
    lowered.map_err(|error| {
        assert_eq!(error.fault(), Fault::Limit, "{what}: {error}");
        error.kind.name().to_owned()
    })
}

fn chain(rules: usize, last: &str, step: impl Fn(usize) -> String) -> String {
    let mut text = String::from("root ::= r0\n");
    for rule in 0..rules {
        text += &format!("r{rule} ::= {}\n", step(rule + 1));
    }
    text + &format!("r{rules} ::= {last}\n")
}

#[test]
fn grammars_made_to_hurt_fail_fast_or_work() {
    let words = Words::new(&[], &[]);
    let too_deep = [
        "(".repeat(60_000),
        format!("\"a\"{}", "?".repeat(60_000)),
        format!("({}", "\"a\" (".repeat(60_000)),
        format!("{}\"a\"{}", "(".repeat(200), ")".repeat(200)),
    ];
    for body in too_deep {
        assert_eq!(timed("nesting", &format!("root ::= {body}\n")).unwrap_err(), "too_deep");
    }
    let deepest = format!("root ::= {}\"a\"{}\n", "(".repeat(128), ")*".repeat(128));
    assert_eq!(
        timed("postfixes of groups", &deepest).map(|lowered| words.accepts(&lowered, "aaa")),
        Ok(true)
    );
    assert_eq!(timed("text", &"#".repeat(2 << 20)).unwrap_err(), "too_long");
    let many: String = (0..10_001).map(|rule| format!("r{rule} ::= \"\"\n")).collect();
    assert_eq!(timed("rules", &many).unwrap_err(), "too_many_rules");

    // Doubling forty times over: a text of 2^40 letters.
    let doubled = chain(40, "\"a\"", |next| format!("r{next} r{next}"));
    if let Ok(lowered) = timed("doubling", &doubled) {
        words.matcher(&lowered).unwrap();
    }
    let long = chain(9_000, "\"a\"", |next| format!("\"x\" r{next}"));
    let lowered = timed("a chain", &long).unwrap();
    assert!(words.accepts(&lowered, &format!("{}a", "x".repeat(9_000))));
    let nested = chain(2_000, "\"a\"", |next| format!("\"(\" r{next} \")\""));
    if let Ok(lowered) = timed("a nested chain", &nested) {
        let text = format!("{}a{}", "(".repeat(2_000), ")".repeat(2_000));
        assert!(words.matcher(&lowered).is_err() || words.accepts(&lowered, &text));
    }
    let ring = chain(2_000, "\"a\" | \"[\" r0 \"]\"", |next| format!("\"x\" r{next} \"y\" | \"z\""));
    if let Ok(lowered) = timed("a ring", &ring) {
        assert!(words.matcher(&lowered).is_err() || words.accepts(&lowered, "xxzyy"));
    }
    let linear: String = (0..60)
        .map(|rule| {
            format!(
                "s{rule} ::= {} | \"e\"\n",
                (0..60)
                    .map(|to| format!("[{}] s{to}", char::from(b'a' + (to % 26) as u8)))
                    .collect::<Vec<_>>()
                    .join(" | ")
            )
        })
        .collect();
    timed("every rule to every rule", &format!("root ::= s0\n{linear}")).unwrap();
    let choice: Vec<String> = (0..4_000).map(|word| format!("\"w{word}\"")).collect();
    let lowered = timed(
        "many words",
        &format!("root ::= word (\",\" root)?  | \"(\" root \")\"\nword ::= {}", choice.join(" | ")),
    )
    .unwrap();
    assert!(words.accepts(&lowered, "(w17,w3999,w4)"));
}
