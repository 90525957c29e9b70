//! Every plan of up to 40 tokens, against what its parts promise.

use super::*;

fn check(spec: PlanSpec, plan: &PrefillPlan) {
    let PlanSpec { len, adopted, boundary, chunk, tile, slack, context } = spec;
    let kept = if adopted < len { adopted } else { len - 1 };
    let inside = boundary.filter(|b| kept < *b && *b < len);
    assert_eq!((plan.adopted(), plan.trim(), plan.boundary()), (kept, adopted - kept, inside), "{spec:?}");
    let mut at = kept;
    let mut cut_at_boundary = inside.is_none();
    for (i, Piece { tokens, padding }) in plan.pieces().iter().enumerate() {
        assert!(tokens.start == at && tokens.end > at, "gap, overlap or nothing: {spec:?} {plan:?}");
        at = tokens.end;
        let n = tokens.len();
        assert!(chunk == 0 || n <= chunk, "{spec:?} {plan:?}");
        cut_at_boundary |= inside == Some(at);
        // A piece shorter than the chunk only before the boundary and at the end.
        let ends = inside == Some(at) || i + 1 == plan.pieces().len();
        assert!(ends || n == chunk, "{spec:?} {plan:?}");
        let to_tile = (0..tile.max(1)).find(|p| (n + p) % tile.max(1) == 0).unwrap();
        let padded = inside != Some(at) && slack.is_none_or(|s| to_tile <= s) && at + to_tile <= context;
        assert_eq!(*padding, if padded { to_tile } else { 0 }, "{spec:?} {plan:?}");
    }
    assert!(at == len && cut_at_boundary, "{spec:?} {plan:?}");
}

#[test]
fn pieces_cover_exactly_in_order_and_padding_is_exact_for_every_plan() {
    let tiles = [0, 1, 2, 3, 8, 64];
    let all = |first: usize| {
        let mut count = 0u64;
        for len in (first..=40).step_by(2) {
            for adopted in 0..=len + 1 {
                for boundary in (0..=len).map(Some).chain([None]) {
                    for chunk in 0..=len {
                        for tile in tiles {
                            let spec = PlanSpec::new(len).adopted(adopted).boundary(boundary).chunk(chunk).tile(tile);
                            check(spec, &PrefillPlan::new(spec).unwrap());
                            count += 1;
                        }
                    }
                }
            }
        }
        count
    };
    let (odd, even) = std::thread::scope(|scope| {
        let odd = scope.spawn(|| all(1));
        (all(2), odd.join().unwrap())
    });
    assert!(odd + even > 3_000_000, "{}", odd + even);
}

#[test]
fn padding_beyond_the_models_context_is_not_planned() {
    for len in 1..=20 {
        for context in len..len + 9 {
            for chunk in [0, 7] {
                let spec = PlanSpec::new(len).chunk(chunk).tile(8).context(context);
                check(spec, &PrefillPlan::new(spec).unwrap());
            }
        }
    }
    for tile in [1 << 40, usize::MAX] {
        assert_eq!(PrefillPlan::new(PlanSpec::new(9).tile(tile).context(100)).unwrap().fed(), 9);
    }
    assert_eq!(PrefillPlan::new(PlanSpec::new(9).tile(usize::MAX)).unwrap().fed(), usize::MAX);
}

#[test]
fn padding_that_the_caches_could_not_forget_is_not_planned() {
    for slack in 0..6 {
        for len in 1..=20 {
            for adopted in 0..=len + 3 {
                let spec = PlanSpec::new(len).adopted(adopted).chunk(7).tile(4).slack(Some(slack));
                match PrefillPlan::new(spec) {
                    Ok(plan) => check(spec, &plan),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Cache);
                        assert!(adopted + 1 > len + slack, "{spec:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_warm_run_reproduces_a_cold_one_exactly_when_it_starts_where_the_cold_one_cuts() {
    for len in 1..=24 {
        for boundary in (0..=len).map(Some).chain([None]) {
            for chunk in 0..=len {
                for tile in [1, 4] {
                    let spec = PlanSpec::new(len).boundary(boundary).chunk(chunk).tile(tile);
                    let cold = PrefillPlan::new(spec).unwrap();
                    for adopted in 0..len {
                        let warm = PrefillPlan::new(spec.adopted(adopted)).unwrap();
                        let cuts = adopted == 0 || cold.split_points().any(|at| at == adopted);
                        let tail: Vec<_> = cold.pieces().iter().filter(|p| p.tokens.start >= adopted).collect();
                        let same = tail.into_iter().eq(warm.pieces());
                        assert_eq!(warm.reproduces(&cold), same, "{spec:?} {adopted}");
                        assert!(!cuts || same, "{spec:?} {adopted}");
                    }
                }
            }
        }
    }
}

#[test]
fn an_empty_prompt_has_no_plan() {
    assert_eq!(PrefillPlan::new(PlanSpec::new(0)).unwrap_err().kind(), ErrorKind::Prompt);
}
