//! What the sampler promises, as properties, against a reference that sorts everything and uses the platform's
//! `exp` in `f64`.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::collections::HashMap;

use maskwright::{Limits, Logits, Sampler, SamplingConfig, TokenId, TokenMask, sample::SampleError};
use proptest::{prelude::*, sample::select};
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{RngCore, SeedableRng},
};

fn sampler(config: SamplingConfig) -> Sampler {
    Sampler::new(config, &Limits::default()).unwrap()
}

fn draw(sampler: &mut Sampler, row: &[f32], mask: Option<&TokenMask>) -> Result<TokenId, SampleError> {
    sampler.sample(&Logits::Host(row), mask).map(|sampled| sampled.id)
}

/// The documented stream: 64-bit words of ChaCha8 keyed by the seed, as numbers from 0 to 1.
fn uniforms(seed: u64) -> impl Iterator<Item = f64> {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let mut rng = ChaCha8Rng::from_seed(key);
    std::iter::repeat_with(move || rng.next_u64() as f64 / 2_f64.powi(64))
}

// ---- the reference

/// Logits after mask, bias and penalties: allowed tokens with finite logits, by rising id.
fn reference_candidates(
    config: &SamplingConfig,
    history: &[TokenId],
    row: &[f32],
    mask: Option<&TokenMask>,
) -> Vec<(TokenId, f64)> {
    let mut counts: HashMap<TokenId, f64> = HashMap::new();
    history.iter().for_each(|&id| *counts.entry(id).or_default() += 1.0);
    (0..)
        .zip(row)
        .filter(|&(id, _)| mask.is_none_or(|mask| mask.allows(id)))
        .filter(|&(_, &logit)| logit > f32::NEG_INFINITY)
        .map(|(id, &logit)| {
            let mut logit = f64::from(logit);
            logit += config
                .logit_bias
                .iter()
                .filter(|&&(b, _)| b == id)
                .map(|&(_, by)| f64::from(by))
                .sum::<f64>();
            if let Some(count) = counts.get(&id) {
                let penalty = f64::from(config.repetition_penalty);
                logit = if logit > 0.0 { logit / penalty } else { logit * penalty };
                logit -= f64::from(config.presence_penalty) + f64::from(config.frequency_penalty) * count;
            }
            (id, logit)
        })
        .collect()
}

/// Probabilities of tokens that may be drawn, by rising id; none where a cut falls so near a token's edge that
/// rounding may decide, or two logits are so near that their order may.
fn reference_distribution(
    config: &SamplingConfig,
    candidates: &[(TokenId, f64)],
) -> Option<Vec<(TokenId, f64)>> {
    const NEAR: f64 = 1e-5;
    let mut ranked = candidates.to_vec();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    if ranked.windows(2).any(|pair| pair[0].1 != pair[1].1 && pair[0].1 - pair[1].1 < NEAR) {
        return None;
    }
    let peak = ranked[0].1;
    let mut ranked: Vec<(TokenId, f64)> = ranked
        .into_iter()
        .map(|(id, logit)| (id, ((logit - peak) / f64::from(config.temperature)).exp()))
        .collect();
    if let Some(k) = config.top_k {
        ranked.truncate(k as usize);
    }
    if config.top_p < 1.0 {
        let total: f64 = ranked.iter().map(|&(_, weight)| weight).sum();
        let mut sum = 0.0;
        let mut kept = ranked.len();
        for (at, &(_, weight)) in ranked.iter().enumerate() {
            sum += weight / total;
            if (sum - f64::from(config.top_p)).abs() < NEAR {
                return None;
            }
            if sum > f64::from(config.top_p) {
                kept = at + 1;
                break;
            }
        }
        ranked.truncate(kept);
    }
    let min_p = f64::from(config.min_p);
    if min_p > 0.0 && ranked.iter().any(|&(_, weight)| (weight - min_p).abs() < NEAR && min_p != 1.0) {
        return None;
    }
    ranked.retain(|&(_, weight)| weight >= min_p);
    let total: f64 = ranked.iter().map(|&(_, weight)| weight).sum();
    ranked.sort_by_key(|&(id, _)| id);
    Some(ranked.into_iter().map(|(id, weight)| (id, weight / total)).collect())
}

/// The token a uniform number means; none where rounding may decide.
fn reference_draw(distribution: &[(TokenId, f64)], uniform: f64) -> Option<TokenId> {
    let mut sum = 0.0;
    for &(id, probability) in distribution {
        if (uniform - sum).abs() < 1e-5 && sum > 0.0 {
            return None;
        }
        sum += probability;
        if uniform < sum {
            return ((sum - uniform) >= 1e-5 || (1.0 - sum) < 1e-9).then_some(id);
        }
    }
    None
}

// ---- what is tried

/// Rows longer than a few blocks and rows of a few logits. Steps are coarse, so that ties are common, and exact in
/// binary, so that biases make exact ties too.
fn rows() -> impl Strategy<Value = Vec<f32>> {
    let logit = prop_oneof![
        8 => (-200_i16..200).prop_map(|n| f32::from(n) * 0.0625),
        1 => Just(f32::NEG_INFINITY),
    ];
    prop_oneof![
        prop::collection::vec(logit.clone(), 1..12),
        prop::collection::vec(logit.clone(), 100..300),
        prop::collection::vec(logit, 1000..3000),
    ]
}

/// A row with a mask over about as many tokens, or none, from tight to full.
fn rows_and_masks() -> impl Strategy<Value = (Vec<f32>, Option<TokenMask>)> {
    (rows(), any::<u64>(), select(vec![0.0, 0.003, 0.05, 0.3, 0.9, 1.0]), -40_isize..40, any::<bool>())
        .prop_map(|(row, seed, share, wider, masked)| {
            let vocab = row.len().saturating_add_signed(wider).max(1);
            let mut bits = uniforms(seed);
            let ids = (0..TokenId::try_from(vocab).unwrap()).filter(|_| bits.next().unwrap() < share);
            let mask = TokenMask::from_ids(vocab, ids);
            (row, masked.then_some(mask))
        })
}

fn configs() -> impl Strategy<Value = SamplingConfig> {
    let cuts = (
        prop::option::of(select(vec![1_u32, 2, 3, 10, 40, 1000])),
        select(vec![1.0_f32, 1.0, 0.0, 0.1, 0.5, 0.9, 0.999]),
        select(vec![0.0_f32, 0.0, 0.02, 0.3, 1.0]),
    );
    let penalties = (
        select(vec![1.0_f32, 1.0, 2.0, 0.5, 100.0]),
        select(vec![0.0_f32, -2.0, 0.75]),
        select(vec![0.0_f32, -0.25, 2.0]),
    );
    let bias = prop::collection::btree_map(0_u32..3000, -100_i8..=100, 0..20);
    (select(vec![0.3_f32, 0.8, 1.0, 2.0]), cuts, penalties, bias, any::<u64>()).prop_map(
        |(temperature, (top_k, top_p, min_p), (repetition, presence, frequency), bias, seed)| {
            SamplingConfig {
                temperature,
                top_k,
                top_p,
                min_p,
                repetition_penalty: repetition,
                presence_penalty: presence,
                frequency_penalty: frequency,
                logit_bias: bias.into_iter().map(|(id, by)| (id, f32::from(by))).collect(),
                seed: Some(seed),
                ..SamplingConfig::default()
            }
        },
    )
}

fn histories() -> impl Strategy<Value = Vec<TokenId>> {
    prop::collection::vec(prop_oneof![0_u32..10, 0_u32..3000], 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn the_draw_is_the_one_of_a_full_sort(
        (row, mask) in rows_and_masks(), config in configs(), history in histories(),
    ) {
        let candidates = reference_candidates(&config, &history, &row, mask.as_ref());
        let mut sampler = sampler(config.clone());
        history.iter().for_each(|&id| sampler.observe(id));
        if candidates.is_empty() {
            prop_assert!(draw(&mut sampler, &row, mask.as_ref()).is_err());
            return Ok(());
        }
        let distribution = reference_distribution(&config, &candidates);
        prop_assume!(distribution.is_some());
        let distribution = distribution.unwrap();
        for uniform in uniforms(config.seed.unwrap()).take(20) {
            let drawn = draw(&mut sampler, &row, mask.as_ref()).unwrap();
            if let Some(expected) = reference_draw(&distribution, uniform) {
                prop_assert_eq!(drawn, expected);
            }
        }
    }

    #[test]
    fn s9_a_forbidden_token_is_never_drawn_for_any_bias_or_penalty(
        (row, mask) in rows_and_masks(), mut config in configs(), history in histories(), greedy: bool,
    ) {
        let Some(mask) = mask else { return Ok(()) };
        // Every forbidden token is pushed as far as a caller can.
        config.logit_bias = (0..3000).filter(|&id| !mask.allows(id)).map(|id| (id, 100.0)).collect();
        if greedy {
            config.temperature = 0.0;
        }
        config.top_logprobs = 20;
        let mut sampler = sampler(config);
        history.iter().for_each(|&id| sampler.observe(id));
        for _ in 0..5 {
            if let Ok(sampled) = sampler.sample(&Logits::Host(&row), Some(&mask)) {
                prop_assert!(mask.allows(sampled.id) && row[sampled.id as usize] > f32::NEG_INFINITY);
                prop_assert!(sampled.alternatives.iter().all(|&(id, _)| mask.allows(id)));
            }
        }
    }

    #[test]
    fn a_lone_allowed_token_is_drawn_whatever_else_is_asked_for(
        mut row in rows(), config in configs(), id in 0_u32..3000, history in histories(),
        temperature in select(vec![0.0_f32, 1e-45, 1e-4, 1.0, 100.0]),
        logit in select(vec![f32::MIN, -1e30, -5.0, -0.0, 5.0, f32::MAX]), bias in -100_i8..=100,
    ) {
        let id = id % u32::try_from(row.len()).unwrap();
        row[id as usize] = logit;
        let bias = vec![(id, f32::from(bias))];
        let mut sampler = sampler(SamplingConfig { temperature, logit_bias: bias, ..config });
        history.iter().for_each(|&id| sampler.observe(id));
        let mask = TokenMask::from_ids(row.len(), [id]);
        let sampled = sampler.sample(&Logits::Host(&row), Some(&mask)).unwrap();
        prop_assert_eq!((sampled.id, sampled.logprob), (id, 0.0));
    }

    #[test]
    fn temperature_zero_is_argmax_and_the_lowest_id_wins_ties((row, mask) in rows_and_masks(), config in configs()) {
        let config = SamplingConfig { temperature: 0.0, logit_bias: Vec::new(), ..config };
        let mut expected: Option<(TokenId, f32)> = None;
        for (id, &logit) in (0..).zip(&row) {
            let allowed = mask.as_ref().is_none_or(|mask| mask.allows(id));
            if allowed && logit > expected.map_or(f32::NEG_INFINITY, |(_, best)| best) {
                expected = Some((id, logit));
            }
        }
        let drawn = draw(&mut sampler(config), &row, mask.as_ref()).ok();
        prop_assert_eq!(drawn, expected.map(|(id, _)| id));
    }

    #[test]
    fn one_number_is_drawn_a_token(
        steps in prop::collection::vec(rows_and_masks(), 1..10), config in configs(),
    ) {
        // Whatever the earlier steps were, step n uses number n: its draw is that of a sampler that drew n times.
        let mut running = sampler(config.clone());
        let mut drawn = 0;
        for (row, mask) in &steps {
            let mut other = sampler(config.clone());
            for _ in 0..drawn {
                draw(&mut other, &[1.0, 2.0, 3.0], None).unwrap();
            }
            let expected = draw(&mut other, row, mask.as_ref());
            prop_assert_eq!(&draw(&mut running, row, mask.as_ref()), &expected);
            drawn += usize::from(expected.is_ok()); // an error draws none
        }
    }

    #[test]
    fn the_shape_of_the_candidates_doesnt_change_the_draw(row in rows(), config in configs(), shift in 1_usize..200) {
        // No mask, a full mask, a wider row with a mask or a bound, and a list with other ids between: the same
        // candidates, cut into blocks elsewhere, the last with every id moved up.
        let config = SamplingConfig { logit_bias: Vec::new(), ..config };
        let size = u32::try_from(row.len()).unwrap();
        let wide: Vec<f32> = row.iter().copied().chain([50.0; 77]).collect();
        let full = TokenMask::from_ids(row.len(), 0..size);
        let apart: Vec<f32> = row.iter().flat_map(|&logit| {
            std::iter::repeat_n(f32::NAN, shift).chain([logit])
        }).collect();
        let step = u32::try_from(shift).unwrap() + 1;
        let spread = TokenMask::from_ids(apart.len(), (0..size).map(|id| id * step + step - 1));
        let mut samplers: Vec<Sampler> = (0..4).map(|_| sampler(config.clone())).collect();
        samplers.push(sampler(config).with_vocab_size(row.len()).unwrap());
        for _ in 0..5 {
            let expected = draw(&mut samplers[0], &row, None).ok();
            prop_assert_eq!(draw(&mut samplers[1], &row, Some(&full)).ok(), expected);
            prop_assert_eq!(draw(&mut samplers[2], &wide, Some(&full)).ok(), expected);
            let moved = draw(&mut samplers[3], &apart, Some(&spread)).ok();
            prop_assert_eq!(moved.map(|id| (id + 1) / step - 1), expected);
            prop_assert_eq!(draw(&mut samplers[4], &wide, None).ok(), expected);
        }
    }

    #[test]
    fn a_logit_that_means_nothing_is_an_error_where_allowed_and_nothing_elsewhere(
        (row, mask) in rows_and_masks(), config in configs(), at in any::<prop::sample::Index>(),
        bad in select(vec![f32::NAN, -f32::NAN, f32::INFINITY]), history in histories(),
    ) {
        let at = at.index(row.len());
        let id = TokenId::try_from(at).unwrap();
        let mut broken = row.clone();
        broken[at] = bad;
        let [mut good, mut other] = [(); 2].map(|()| sampler(config.clone()));
        history.iter().for_each(|&id| { good.observe(id); other.observe(id); });
        let drawn = other.sample(&Logits::Host(&broken), mask.as_ref());
        if mask.as_ref().is_none_or(|mask| mask.allows(id)) {
            let expected = if bad.is_nan() { SampleError::NotANumber { id } } else { SampleError::Infinite { id } };
            prop_assert_eq!(drawn, Err(expected));
        } else {
            prop_assert_eq!(drawn, good.sample(&Logits::Host(&row), mask.as_ref()));
        }
    }

    #[test]
    fn forgetting_undoes_observing(
        row in rows(), config in configs(), kept in histories(), dropped in histories(),
    ) {
        let config = SamplingConfig { presence_penalty: 1.5, top_logprobs: 20, ..config };
        let [mut straight, mut back] = [(); 2].map(|()| sampler(config.clone()));
        kept.iter().for_each(|&id| { straight.observe(id); back.observe(id); });
        dropped.iter().for_each(|&id| back.observe(id));
        back.forget(&dropped);
        prop_assert_eq!(straight.sample(&Logits::Host(&row), None), back.sample(&Logits::Host(&row), None));
    }

    #[test]
    fn probabilities_of_all_allowed_tokens_sum_to_one(
        row in prop::collection::vec(-30_f32..30.0, 1..500), allowed in prop::collection::btree_set(0_u32..500, 1..=20),
        config in configs(),
    ) {
        let mask = TokenMask::from_ids(row.len(), allowed);
        let config = SamplingConfig { top_logprobs: 20, ..config };
        let Ok(sampled) = sampler(config).sample(&Logits::Host(&row), Some(&mask)) else {
            prop_assert_eq!(mask.count(), 0);
            return Ok(());
        };
        prop_assert_eq!(sampled.alternatives.len(), mask.count());
        prop_assert!(sampled.alternatives.is_sorted_by(|a, b| a.1 > b.1 || a.1 == b.1 && a.0 < b.0));
        let sum: f64 = sampled.alternatives.iter().map(|&(_, logprob)| f64::from(logprob).exp()).sum();
        prop_assert!((sum - 1.0).abs() < 1e-5, "{}", sum);
        let own = sampled.alternatives.iter().find(|&&(id, _)| id == sampled.id);
        prop_assert_eq!(own.map(|&(_, logprob)| logprob), Some(sampled.logprob));
    }

    #[test]
    fn log_probabilities_know_bias_and_penalties_but_not_temperature_or_cuts(
        (row, mask) in rows_and_masks(), config in configs(), history in histories(),
    ) {
        let candidates = reference_candidates(&config, &history, &row, mask.as_ref());
        let mut sampler = sampler(SamplingConfig { top_logprobs: 5, ..config });
        history.iter().for_each(|&id| sampler.observe(id));
        let Ok(sampled) = sampler.sample(&Logits::Host(&row), mask.as_ref()) else { return Ok(()) };
        let peak = candidates.iter().map(|&(_, logit)| logit).fold(f64::NEG_INFINITY, f64::max);
        let log_sum = peak + candidates.iter().map(|&(_, logit)| (logit - peak).exp()).sum::<f64>().ln();
        for (id, logprob) in sampled.alternatives.into_iter().chain([(sampled.id, sampled.logprob)]) {
            let logit = candidates.iter().find(|&&(c, _)| c == id).unwrap().1;
            prop_assert!((f64::from(logprob) - (logit - log_sum)).abs() < 1e-3);
        }
    }
}

// ---- cases worked out by hand

/// Probabilities 0.4, 0.3, 0.2 and 0.1 at temperature 1, by falling rank: ids 2, 0, 3, 1.
fn four() -> [f32; 4] {
    [0.3_f32, 0.1, 0.4, 0.2].map(f32::ln)
}

/// The tokens drawn in 200 draws.
fn support(config: SamplingConfig, row: &[f32], mask: Option<&TokenMask>) -> Vec<TokenId> {
    let mut sampler = sampler(SamplingConfig { seed: Some(3), ..config });
    let mut drawn: Vec<TokenId> = (0..200).map(|_| draw(&mut sampler, row, mask).unwrap()).collect();
    drawn.sort_unstable();
    drawn.dedup();
    drawn
}

#[test]
fn cuts_are_made_in_order_each_on_what_the_last_one_left() {
    let base = SamplingConfig { temperature: 1.0, ..SamplingConfig::default() };
    let cases: &[(&str, SamplingConfig, &[TokenId])] = &[
        ("nothing cut", base.clone(), &[0, 1, 2, 3]),
        ("top-k", SamplingConfig { top_k: Some(3), ..base.clone() }, &[0, 2, 3]),
        ("top-p", SamplingConfig { top_p: 0.65, ..base.clone() }, &[0, 2]),
        (
            "top-p of all: 0.4 + 0.3 is short of 0.75",
            SamplingConfig { top_p: 0.75, ..base.clone() },
            &[0, 2, 3],
        ),
        (
            "top-p of top-k's three: (0.4 + 0.3) / 0.9 is past 0.75",
            SamplingConfig { top_k: Some(3), top_p: 0.75, ..base.clone() },
            &[0, 2],
        ),
        ("top-p of nothing keeps one", SamplingConfig { top_p: 0.0, ..base.clone() }, &[2]),
        ("min-p: half of 0.4", SamplingConfig { min_p: 0.45, ..base.clone() }, &[0, 2, 3]),
        (
            "top-p before min-p: were min-p first, 0.4 / 0.7 would do for 0.55",
            SamplingConfig { top_p: 0.55, min_p: 0.7, ..base.clone() },
            &[0, 2],
        ),
        (
            "temperature before top-p: at 0.5 the shares are 0.53, 0.30, 0.13, 0.03",
            SamplingConfig { temperature: 0.5, top_p: 0.5, ..base.clone() },
            &[2],
        ),
        ("bias before the cuts", SamplingConfig { top_k: Some(1), logit_bias: vec![(1, 2.0)], ..base }, &[1]),
    ];
    for (name, config, expected) in cases {
        assert_eq!(support(config.clone(), &four(), None), *expected, "{name}");
    }
}

#[test]
fn the_mask_comes_before_every_cut() {
    let mask = TokenMask::from_ids(4, [1, 3]);
    let base = SamplingConfig { temperature: 1.0, ..SamplingConfig::default() };
    for (config, expected) in [
        (SamplingConfig { top_k: Some(1), ..base.clone() }, vec![3]),
        (SamplingConfig { top_p: 0.6, ..base.clone() }, vec![3]),
        (SamplingConfig { top_p: 0.7, ..base.clone() }, vec![1, 3]),
        (SamplingConfig { min_p: 0.45, ..base }, vec![1, 3]),
    ] {
        assert_eq!(support(config, &four(), Some(&mask)), expected);
    }
}

#[test]
fn ties_at_a_cut_go_to_the_lowest_ids() {
    let row = [1.0, 0.0, 1.0, 1.0, 1.0];
    let base = SamplingConfig { temperature: 1.0, ..SamplingConfig::default() };
    assert_eq!(support(SamplingConfig { top_k: Some(2), ..base.clone() }, &row, None), [0, 2]);
    assert_eq!(support(SamplingConfig { top_p: 0.5, ..base.clone() }, &row, None), [0, 2, 3]);
    assert_eq!(support(SamplingConfig { min_p: 1.0, ..base }, &row, None), [0, 2, 3, 4]);
    assert_eq!(draw(&mut sampler(SamplingConfig::greedy()), &[-0.0, 0.0], None), Ok(0));
}

#[test]
fn penalties_are_those_of_the_papers() {
    // Greedy over the row after penalties; token 0 was seen twice, token 1 once, token 2 never.
    let scores = |config: SamplingConfig, row: [f32; 3]| {
        let mut sampler = sampler(SamplingConfig { top_logprobs: 3, temperature: 0.0, ..config });
        [0, 1, 0].into_iter().for_each(|id| sampler.observe(id));
        let mut scores = sampler.sample(&Logits::Host(&row), None).unwrap().alternatives;
        scores.sort_by_key(|&(id, _)| id);
        [scores[0].1 - scores[2].1, scores[1].1 - scores[2].1]
    };
    let near = |a: [f32; 2], b: [f32; 2]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5);
    let base = SamplingConfig::default();
    let repetition = SamplingConfig { repetition_penalty: 2.0, ..base.clone() };
    assert!(near(scores(repetition, [4.0, -4.0, 0.0]), [2.0, -8.0]));
    let presence = SamplingConfig { presence_penalty: 0.5, ..base.clone() };
    assert!(near(scores(presence, [4.0, -4.0, 0.0]), [3.5, -4.5]));
    let frequency = SamplingConfig { frequency_penalty: 0.5, ..base.clone() };
    assert!(near(scores(frequency, [4.0, -4.0, 0.0]), [3.0, -4.5]));
    // Bias first, then repetition, then the others: (4 + 2) / 2 − 0.5 − 2 · 0.25.
    let all = SamplingConfig {
        repetition_penalty: 2.0,
        presence_penalty: 0.5,
        frequency_penalty: 0.25,
        logit_bias: vec![(0, 2.0)],
        ..base
    };
    assert!(near(scores(all, [4.0, 4.0, 0.0]), [2.0, 1.25]));
}

#[test]
fn greedy_steps_in_between_dont_shift_the_stream() {
    // One sampler per temperature; the stream of the warm one is what it is without the cold one's steps.
    let row: Vec<f32> = (0..50_u8).map(|n| f32::from(n % 7)).collect();
    let warm = SamplingConfig { seed: Some(11), ..SamplingConfig::default() };
    let mut sampler_warm = sampler(warm.clone());
    let mut cold = sampler(SamplingConfig { temperature: 0.0, ..warm.clone() });
    let straight: Vec<_> = (0..20).map(|_| draw(&mut sampler_warm, &row, None)).collect();
    assert!((0..20).all(|_| draw(&mut cold, &row, None) == Ok(6)));
    let mut again = sampler(warm);
    assert_eq!((0..20).map(|_| draw(&mut again, &row, None)).collect::<Vec<_>>(), straight);
}

#[test]
fn a_seed_means_the_same_tokens_for_ever() {
    let row: Vec<f32> = (0..1000_u16).map(|n| f32::from(n * 37 % 101) * 0.1).collect();
    let mut sampler = sampler(SamplingConfig { top_p: 0.95, seed: Some(42), ..SamplingConfig::default() });
    let drawn: Vec<_> = (0..8).map(|_| draw(&mut sampler, &row, None).unwrap()).collect();
    assert_eq!(drawn, [352, 289, 494, 363, 835, 60, 494, 262]);
}

#[test]
fn a_sampler_without_a_seed_says_which_it_drew() {
    let row = [0.0; 1000];
    let mut first = sampler(SamplingConfig::default());
    let mut again = sampler(SamplingConfig { seed: Some(first.seed()), ..SamplingConfig::default() });
    let drawn: Vec<_> = (0..20).map(|_| draw(&mut first, &row, None)).collect();
    assert_eq!((0..20).map(|_| draw(&mut again, &row, None)).collect::<Vec<_>>(), drawn);
    let mut other = sampler(SamplingConfig::default());
    assert_ne!((0..20).map(|_| draw(&mut other, &row, None)).collect::<Vec<_>>(), drawn);
}

#[test]
fn frequencies_are_those_of_the_softmax() {
    let row: Vec<f32> = (0..400_u16).map(|n| f32::from(n * 29 % 97) * 0.03).collect();
    let allowed = TokenMask::from_ids(400, (0..400).step_by(2));
    let tight = TokenMask::from_ids(400, (0..400).step_by(23));
    let cuts = SamplingConfig { seed: Some(5), ..SamplingConfig::default() };
    for (name, config, mask) in [
        ("uncut", cuts.clone(), None),
        ("masked", cuts.clone(), Some(&allowed)),
        ("listed", SamplingConfig { temperature: 1.7, ..cuts.clone() }, Some(&tight)),
        ("top-k", SamplingConfig { top_k: Some(55), ..cuts.clone() }, Some(&allowed)),
        ("top-p", SamplingConfig { top_p: 0.8, ..cuts.clone() }, None),
        ("min-p", SamplingConfig { min_p: 0.2, ..cuts }, None),
    ] {
        let expected =
            reference_distribution(&config, &reference_candidates(&config, &[], &row, mask)).expect(name);
        let mut sampler = sampler(config);
        let mut counts: HashMap<TokenId, f64> = HashMap::new();
        let draws = 100_000;
        for _ in 0..draws {
            *counts.entry(draw(&mut sampler, &row, mask).unwrap()).or_default() += 1.0;
        }
        assert!(counts.keys().all(|id| expected.iter().any(|(e, _)| e == id)), "{name}");
        let chi_square: f64 = expected
            .iter()
            .map(|&(id, probability)| {
                let mean = probability * f64::from(draws);
                (counts.get(&id).unwrap_or(&0.0) - mean).powi(2) / mean
            })
            .sum();
        // Five standard deviations either way; too even is as wrong as too uneven.
        let freedom = expected.len() as f64 - 1.0;
        let away = (chi_square - freedom) / (2.0 * freedom).sqrt();
        assert!(away.abs() < 5.0, "{name}: chi-square {chi_square} at {freedom} degrees of freedom");
    }
}

#[test]
fn a_state_from_which_nothing_can_be_drawn_is_named() {
    let inf = f32::NEG_INFINITY;
    let five = TokenMask::from_ids(10, [1, 2, 3, 4, 5]);
    let late = TokenMask::from_ids(100, [50, 60]);
    let late_many = TokenMask::from_ids(100, 50..100);
    let empty = TokenMask::none(10);
    let cases: [(&[f32], Option<&TokenMask>, SampleError); 7] = [
        (&[], None, SampleError::EmptyRow),
        (&[0.0; 10], Some(&empty), SampleError::EmptyMask { vocab: 10 }),
        (&[0.0; 10], Some(&late), SampleError::PastRow { allowed: 2, width: 10 }),
        (&[0.0; 10], Some(&late_many), SampleError::PastRow { allowed: 50, width: 10 }),
        (&[inf; 3], None, SampleError::Impossible { allowed: 3 }),
        (
            &[0.0, inf, inf, inf, inf, inf, 0.0, 0.0, 0.0, 0.0],
            Some(&five),
            SampleError::Impossible { allowed: 5 },
        ),
        (&[0.0, f32::NAN, f32::INFINITY], None, SampleError::NotANumber { id: 1 }),
    ];
    for temperature in [0.0, 0.8] {
        for (row, mask, expected) in &cases {
            let mut sampler =
                sampler(SamplingConfig { temperature, top_p: 0.9, ..SamplingConfig::default() });
            assert_eq!(draw(&mut sampler, row, *mask).as_ref(), Err(expected));
            assert_eq!(expected.fault(), maskwright::Fault::Server);
        }
    }
}

#[test]
fn values_out_of_range_are_refused_by_name() {
    type Change = fn(&mut SamplingConfig);
    let cases: &[(Change, &str)] = &[
        (|c| c.temperature = f32::NAN, "temperature is NaN; it must be a number from 0 to 100"),
        (|c| c.temperature = f32::INFINITY, "temperature is inf; it must be a number from 0 to 100"),
        (|c| c.temperature = -0.1, "temperature is -0.1; it must be a number from 0 to 100"),
        (|c| c.top_p = 1.01, "top_p is 1.01; it must be a number from 0 to 1"),
        (|c| c.top_p = f32::NAN, "top_p is NaN; it must be a number from 0 to 1"),
        (|c| c.min_p = -1.0, "min_p is -1; it must be a number from 0 to 1"),
        (|c| c.repetition_penalty = 0.0, "repetition_penalty is 0; it must be a number from 0.01 to 100"),
        (|c| c.presence_penalty = 2.5, "presence_penalty is 2.5; it must be a number from -2 to 2"),
        (|c| c.frequency_penalty = -2.5, "frequency_penalty is -2.5; it must be a number from -2 to 2"),
        (|c| c.top_k = Some(0), "top_k is 0; it must be 1 or more, or absent"),
        (|c| c.logit_bias = vec![(7, 100.5)], "logit_bias[7] is 100.5; it must be a number from -100 to 100"),
        (
            |c| c.logit_bias = vec![(7, f32::NAN)],
            "logit_bias[7] is NaN; it must be a number from -100 to 100",
        ),
        (
            |c| c.logit_bias = vec![(7, f32::NEG_INFINITY)],
            "logit_bias[7] is -inf; it must be a number from -100 to 100",
        ),
        (|c| c.logit_bias = vec![(7, 1.0), (3, 1.0), (7, 1.0)], "logit_bias names token 7 twice"),
        (|c| c.top_logprobs = 21, "top_logprobs is 21; at most 20 are reported"),
        (
            |c| (c.logprobs, c.top_logprobs) = (false, 1),
            "top_logprobs is 1; it must be 0 where logprobs is false",
        ),
    ];
    for (change, expected) in cases {
        let mut config = SamplingConfig::default();
        change(&mut config);
        let error = Sampler::new(config, &Limits::default()).unwrap_err();
        assert_eq!(error.to_string(), *expected);
        assert_ne!(error.fault(), maskwright::Fault::Server);
    }
    let biased = SamplingConfig { logit_bias: vec![(7, 1.0)], ..SamplingConfig::default() };
    let error = sampler(biased).with_vocab_size(7).unwrap_err();
    assert_eq!(error, SampleError::BiasPastVocabulary { id: 7, vocab: 7 });
}
