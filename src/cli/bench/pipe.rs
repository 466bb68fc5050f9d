//! `maskwright bench pipe`: masks for another program's decoder, through pipes.
//!
//! All numbers are 32 bits, little-endian. Out: the number of tokens of the vocabulary. Then a mask, and after each
//! token that comes in another: one word per 32 tokens, bit `i % 32` of word `i / 32` for token `i`. The end of stdin
//! ends it. For comparing decoders; a program that wants masks for more than that takes the library.

use std::{
    io::{ErrorKind, Read, Write},
    process::ExitCode,
};

use super::{Failure, args::PipeArgs, vocabulary};
use crate::{Limits, engine::Compiler};

pub(super) fn pipe(args: &PipeArgs) -> Result<ExitCode, Failure> {
    let limits = Limits::default();
    let constraint = args.constraint.constraint(&limits)?;
    let constraint = constraint.ok_or_else(|| Failure::usage("there is no constraint"))?;
    let grammar = constraint.to_grammar(&limits).map_err(Failure::usage)?;
    let compiler = Compiler::new(vocabulary(&args.tokenizer)?, limits).map_err(Failure::runtime)?;
    let mut matcher = compiler.compile(&grammar).map_err(Failure::usage)?.matcher();
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let size = u32::try_from(compiler.vocabulary().size()).map_err(Failure::runtime)?;
    output.write_all(&size.to_le_bytes())?;
    loop {
        let mask = matcher.mask().map_err(Failure::runtime)?;
        let bytes: Vec<u8> = mask.as_words().iter().flat_map(|word| word.to_le_bytes()).collect();
        output.write_all(&bytes)?;
        output.flush()?;
        let mut token = [0; 4];
        match input.read_exact(&mut token) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(ExitCode::SUCCESS),
            read => read?,
        }
        matcher.commit(&[u32::from_le_bytes(token)]).map_err(Failure::runtime)?;
    }
}
