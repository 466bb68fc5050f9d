//! Every bound that a stranger's input can meet, in one struct.
//!
//! A check elsewhere in the crate that refuses something for its size cites a field of [`Limits`]; the error
//! carries what was given and the limit.

/// Bounds on input and on the work that input may cause.
///
/// The defaults suit a library or a command on one's own machine; a public server lowers them.
///
/// ```
/// use maskwright::Limits;
/// let limits = Limits { schema_bytes: 64 * 1024, ..Limits::default() };
/// assert!(limits.schema_bytes < Limits::default().schema_bytes);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Limits {
    /// JSON Schema text, in bytes. Default 2 MiB.
    pub schema_bytes: usize,
    /// Nesting of a JSON Schema document, in levels. Default 128, the depth `serde_json` itself reads.
    pub schema_depth: usize,
    /// Rules of the grammar that a JSON Schema becomes, and states of its values. Default 100,000.
    pub schema_rules: usize,
    /// Regular-expression work for one question about a pattern of a JSON Schema. Default 200,000.
    pub schema_fuel: u64,
    /// Grammar text (Lark, GBNF), in bytes. Default 1 MiB.
    pub grammar_bytes: usize,
    /// Nesting of groups in grammar text, in levels. Default 128.
    pub grammar_depth: usize,
    /// Rules of a grammar (GBNF). Default 10,000.
    pub grammar_rules: usize,
    /// A count in `{m,n}` of a grammar (GBNF). Default 100,000.
    pub grammar_repeat: usize,
    /// A regular expression, in bytes. Default 64 KiB.
    pub regex_bytes: usize,
    /// Number of choices of a choice constraint. Default 10,000.
    pub choices: usize,
    /// All choices of a choice constraint together, in bytes. Default 1 MiB.
    pub choice_bytes: usize,
    /// Formats of a structural tag, those within others counted; and pairs of expressions in it that have to be told
    /// apart. Default 1,000.
    pub structural_formats: usize,
    /// Prompt text, in bytes. Default 4 MiB.
    pub prompt_bytes: usize,
    /// Number of tools. Default 128.
    pub tools: usize,
    /// Number of stop strings. Default 16.
    pub stop_strings: usize,
    /// One stop string, in bytes. Default 1 KiB.
    pub stop_string_bytes: usize,
    /// Alternatives reported per token. Default 20.
    pub top_logprobs: usize,
    /// Compiled grammars kept, counted. Default 256.
    pub cache_entries: usize,
    /// Compiled grammars kept, in estimated bytes. Default 512 MiB.
    pub cache_bytes: usize,
    /// Grammars kept by the constraint they were made from, in estimated bytes. Default 16 MiB.
    pub grammar_cache_bytes: usize,
    /// Lexers kept per compiled grammar, so that this many sequences under it needn't wait for each other. Default 4; never
    /// more than there are cores, as each lexer has to learn for itself what a grammar's texts need.
    pub pooled_matchers: usize,
    /// One lexer of a compiled grammar, in estimated bytes; a larger one is replaced by a new one. Default 64 MiB.
    pub lexer_bytes: usize,
    /// What is kept of one lexer's masks, in estimated bytes. Default 24 MiB.
    pub mask_cache_bytes: usize,
    /// Finished masks of all compiled grammars, in bytes. Default 128 MiB.
    pub mask_bytes: usize,
    /// Token histories known per compiled grammar, in estimated bytes without their masks. Default 4 MiB.
    pub history_bytes: usize,
    /// Different masks of those histories per compiled grammar, in bytes. Default 16 MiB.
    pub history_mask_bytes: usize,

    /// Earley items at one place of the text. Default 2,000.
    pub items_in_row: usize,
    /// Regular-expression work while a grammar is compiled; about 50,000 a millisecond. Default 1,000,000.
    pub compile_fuel: u64,
    /// Regular-expression work for one mask; about 14,000 a millisecond. Default 200,000.
    pub mask_fuel: u64,
    /// Earley items for one mask; about 20,000 a millisecond. Default 50,000.
    pub mask_items: usize,
    /// Lexer states of one compiled grammar, 1 to 2 kB each. Default 250,000.
    pub lexer_states: usize,
    /// Symbols of one grammar after expansion. Default 500,000.
    pub grammar_symbols: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            schema_bytes: 2 << 20,
            schema_depth: 128,
            schema_rules: 100_000,
            schema_fuel: 200_000,
            grammar_bytes: 1 << 20,
            grammar_depth: 128,
            grammar_rules: 10_000,
            grammar_repeat: 100_000,
            regex_bytes: 64 << 10,
            choices: 10_000,
            choice_bytes: 1 << 20,
            structural_formats: 1_000,
            prompt_bytes: 4 << 20,
            tools: 128,
            stop_strings: 16,
            stop_string_bytes: 1 << 10,
            top_logprobs: 20,
            cache_entries: 256,
            cache_bytes: 512 << 20,
            grammar_cache_bytes: 16 << 20,
            pooled_matchers: 4,
            lexer_bytes: 64 << 20,
            mask_cache_bytes: 24 << 20,
            mask_bytes: 128 << 20,
            history_bytes: 4 << 20,
            history_mask_bytes: 16 << 20,
            items_in_row: 2_000,
            compile_fuel: 1_000_000,
            mask_fuel: 200_000,
            mask_items: 50_000,
            lexer_states: 250_000,
            grammar_symbols: 500_000,
        }
    }
}
