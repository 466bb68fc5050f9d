//! Vector code against portable code, many rows against one.

use super::*;

/// Numbers from -1 to 1, the same every time.
fn random(seed: u64) -> impl FnMut() -> f32 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        #[expect(clippy::cast_precision_loss, reason = "24 bits")]
        let whole = (state >> 40) as f32;
        whole / 8_388_608.0 - 1.0
    }
}

fn row(len: usize, seed: u64) -> Vec<f32> {
    let mut next = random(seed);
    (0..len).map(|_| next()).collect()
}

fn quantised(simd: Simd, row: &[f32]) -> Vec<Quantised> {
    let mut blocks = vec![Quantised::default(); row.len() / BLOCK];
    quantise(simd, row, &mut blocks);
    blocks
}

fn near(a: f32, b: f32) -> bool {
    (a - b).abs() <= 1e-5 * (1.0 + a.abs())
}

#[test]
fn vector_and_portable_code_quantise_to_the_same_numbers() {
    let mut cases = vec![vec![0.0; 64], row(320, 1), row(320, 2).iter().map(|x| x * 1e-30).collect()];
    cases.push((0_u8..32).map(|i| f32::from(i) - 15.5).collect()); // ties
    for case in cases {
        let (fast, plain) = (quantised(Simd::detect(), &case), quantised(Simd::portable(), &case));
        for (a, b) in fast.iter().zip(&plain) {
            assert_eq!(
                (a.high, a.low, a.pairs, a.total, a.scale.to_bits(), a.sum.to_bits()),
                (b.high, b.low, b.pairs, b.total, b.scale.to_bits(), b.sum.to_bits())
            );
        }
    }
}

fn nibble_tile(seed: u64, full: bool) -> NibbleTile {
    let mut next = random(seed);
    let mut half = || f16::from_f32(next());
    let (scale, min) = (std::array::from_fn(|_| half()), std::array::from_fn(|_| half()));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
    let mut byte = || if full { 255 } else { ((next() + 1.0) * 127.9) as u8 };
    NibbleTile { scale, min, quants: std::array::from_fn(|_| std::array::from_fn(|_| byte())) }
}

fn byte_tile(seed: u64, full: bool) -> ByteTile {
    let mut next = random(seed);
    let scale = std::array::from_fn(|_| f16::from_f32(next()));
    #[expect(clippy::cast_possible_truncation, reason = "-127 to 127")]
    let mut byte = || if full { -127 } else { (next() * 127.9) as i8 };
    ByteTile { scale, quants: std::array::from_fn(|_| std::array::from_fn(|_| byte())) }
}

#[test]
fn vector_and_portable_code_multiply_to_the_same_whole_numbers() {
    // With one block, scale 1 and no minimum what comes out is the whole number itself.
    for (seed, full) in [(1, false), (2, false), (3, true)] {
        let ones = [f16::ONE; GROUP];
        let nibbles = NibbleTile { scale: ones, min: [f16::ZERO; GROUP], ..nibble_tile(seed, full) };
        let bytes = ByteTile { scale: ones, ..byte_tile(seed, full) };
        let numbers = if full { vec![-1.0; BLOCK] } else { row(BLOCK, seed + 9) };
        let mut x = quantised(Simd::detect(), &numbers);
        x[0].scale = 1.0;
        // Three groups: two that VNNI takes together, and one.
        let mut out = [[[0.0; GROUP]; 3]; 2];
        multiply_nibbles(Simd::detect(), &[nibbles; 3], 1, &x, &mut out[0]);
        multiply_bytes(Simd::detect(), &[bytes; 3], 1, &x, &mut out[1]);
        let groups = out[0].into_iter().zip(out[1]);
        for (r, (a, b)) in groups.flat_map(|(a, b)| a.into_iter().zip(b).enumerate()) {
            #[expect(clippy::cast_precision_loss, reason = "below 2^24")]
            let expected = (
                portable::nibble_dot(&nibbles, r, &x[0]) as f32,
                portable::byte_dot(&bytes, r, &x[0]) as f32,
            );
            assert_eq!((a.to_bits(), b.to_bits()), (expected.0.to_bits(), expected.1.to_bits()));
        }
    }
}

#[test]
fn rows_multiplied_together_are_as_if_each_were_alone() {
    let blocks = 6;
    let nibbles: Vec<_> = (0..6).map(|seed| nibble_tile(seed, false)).collect();
    let bytes: Vec<_> = (0..6).map(|seed| byte_tile(seed, false)).collect();
    let floats: Vec<FloatTile> = row(blocks * BLOCK * GROUP, 5).as_chunks::<GROUP>().0.to_vec();
    for count in 1..10 {
        let rows = row(count * blocks * BLOCK, 77);
        for simd in [Simd::detect(), Simd::portable()] {
            let x = quantised(simd, &rows);
            let mut together = [(); 3].map(|()| vec![[0.0; GROUP]; count]);
            multiply_nibbles(simd, &nibbles, blocks, &x, &mut together[0]);
            multiply_bytes(simd, &bytes, blocks, &x, &mut together[1]);
            multiply_floats(simd, &floats, &rows, &mut together[2]);
            for c in 0..count {
                let mut alone = [[[0.0; GROUP]; 1]; 3];
                multiply_nibbles(simd, &nibbles, blocks, &x[c * blocks..][..blocks], &mut alone[0]);
                multiply_bytes(simd, &bytes, blocks, &x[c * blocks..][..blocks], &mut alone[1]);
                multiply_floats(simd, &floats, &rows[c * blocks * BLOCK..][..blocks * BLOCK], &mut alone[2]);
                for (together, alone) in together.iter().zip(&alone) {
                    assert_eq!(together[c].map(f32::to_bits), alone[0].map(f32::to_bits));
                }
            }
        }
    }
}

#[test]
fn groups_multiplied_together_are_as_if_each_were_alone_in_every_bit() {
    let blocks = 5;
    for groups in 1..5 {
        let nibbles: Vec<_> = (0..).take(groups * blocks).map(|seed| nibble_tile(seed, false)).collect();
        let bytes: Vec<_> = (0..).take(groups * blocks).map(|seed| byte_tile(seed, false)).collect();
        for count in 1..20 {
            let x = quantised(Simd::detect(), &row(count * blocks * BLOCK, 78));
            let mut together = [(); 2].map(|()| vec![[0.0; GROUP]; groups * count]);
            let mut alone = together.clone();
            multiply_nibbles(Simd::detect(), &nibbles, blocks, &x, &mut together[0]);
            multiply_bytes(Simd::detect(), &bytes, blocks, &x, &mut together[1]);
            let plain = Simd::detect().without_vnni();
            for group in 0..groups {
                let (tiles, out) = (group * blocks, group * count);
                let to = &mut alone[0][out..][..count];
                multiply_nibbles(plain, &nibbles[tiles..][..blocks], blocks, &x, to);
                multiply_bytes(plain, &bytes[tiles..][..blocks], blocks, &x, &mut alone[1][out..][..count]);
            }
            for (together, alone) in together.iter().zip(&alone) {
                let bits = |out: &[[f32; GROUP]]| -> Vec<u32> {
                    out.as_flattened().iter().map(|x| x.to_bits()).collect()
                };
                assert_eq!(bits(together), bits(alone), "{groups} groups, {count} rows");
            }
        }
    }
}

#[test]
fn vector_and_portable_loops_agree() {
    for (head, places) in [(64, 37), (16, 3), (80, 9), (6, 1)] {
        let (queries, keys, values) = (row(2 * head, 1), row(places * head, 2), row(places * head, 3));
        let work = Attend { queries: &queries, keys: &keys, values: &values, head, scale: 0.3 };
        let mut out = [(); 2].map(|()| vec![0.0; 2 * head]);
        for (simd, out) in [Simd::detect(), Simd::portable()].into_iter().zip(&mut out) {
            work.run(simd, &mut vec![0.0; places], out);
        }
        assert!(out[0].iter().zip(&out[1]).all(|(a, b)| near(*a, *b)), "{out:?}");
    }
    let (a, b) = (row(37, 4), row(37, 5));
    let mut out = [(); 4].map(|()| vec![0.0; 37]);
    norm(Simd::detect(), &a, &b, 1e-5, &mut out[0]);
    norm(Simd::portable(), &a, &b, 1e-5, &mut out[1]);
    gate(Simd::detect(), &a, &b, &mut out[2]);
    gate(Simd::portable(), &a, &b, &mut out[3]);
    for pair in out.chunks(2) {
        assert!(pair[0].iter().zip(&pair[1]).all(|(a, b)| near(*a, *b)), "{pair:?}");
    }
}

#[test]
fn gate_is_silu_wherever_it_is_looked_at() {
    for x in [-1e30, -200.0, -90.0, -30.0, -1.0, -1e-3, 0.0, 1e-3, 1.0, 30.0, 90.0, 1e30_f32] {
        let mut out = [0.0];
        for simd in [Simd::detect(), Simd::portable()] {
            gate(simd, &[x], &[1.0], &mut out);
            let expected = f64::from(x) / (1.0 + (-f64::from(x)).exp());
            let error = (f64::from(out[0]) - expected).abs();
            assert!(error <= 1e-6 * expected.abs() + 1e-6, "silu({x}) = {}, not {expected}", out[0]);
        }
    }
}
