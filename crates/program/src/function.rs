//! Functions of one number as short straight-line programs, for suites in which a party computes them in the clear.
//!
//! A program says exactly what they are, so that all who compute them agree bit by bit; docs/reference/operators.md has the rule,
//! `privet_suites::stream` the values.

use serde::{Deserialize, Serialize};

/// Most steps of a function.
const MAX_STEPS: usize = 1 << 8;

/// Magnitudes of a constant's mantissa and exponent stay up to these, so that it is a normal number.
const MAX_MANTISSA: u64 = 1 << 53;
const MAX_EXPONENT: u32 = 400;

/// One step on earlier results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What is computed.
    pub name: Primitive,
    /// On what: 0 is the function's argument, `k + 1` the result of step `k`.
    pub operands: Vec<usize>,
    /// The factor or summand of [`Primitive::Scale`] and [`Primitive::Shift`].
    #[serde(default)]
    pub constant: Option<Constant>,
}

/// A binary fraction, `mantissa * 2^exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constant {
    /// At most `2^53` in magnitude.
    pub mantissa: i64,
    /// From -400 to 400.
    pub exponent: i32,
}

/// What a step computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // the functions' usual names
pub enum Primitive {
    Add,
    Sub,
    Mul,
    /// Times a constant.
    Scale,
    /// Plus a constant.
    Shift,
    Exp,
    Sigmoid,
    Tanh,
    /// `log(1 + exp(x))`.
    Softplus,
    /// The error function.
    Erf,
    /// `max(x, 0)`.
    Relu,
    /// The natural logarithm, of what is positive.
    Log,
    /// The square root, of what is not negative.
    Sqrt,
    /// `1 / x`.
    Reciprocal,
    /// The sine of an angle.
    Sin,
    /// The cosine of an angle.
    Cos,
    /// The angle whose tangent it is.
    Atan,
}

/// Refuses steps that read what is not there, or lack what they need.
pub(crate) fn check(steps: &[Step]) -> Result<(), String> {
    if steps.len() > MAX_STEPS {
        return Err(format!("a function of {} steps", steps.len()));
    }
    for (index, step) in steps.iter().enumerate() {
        let arity = 1 + usize::from(matches!(step.name, Primitive::Add | Primitive::Sub | Primitive::Mul));
        if step.operands.len() != arity || step.operands.iter().any(|&operand| operand > index) {
            return Err(format!("step {index} reads {:?}", step.operands));
        }
        let needs_constant = matches!(step.name, Primitive::Scale | Primitive::Shift);
        let fits = |constant: &Constant| {
            constant.mantissa.unsigned_abs() <= MAX_MANTISSA && constant.exponent.unsigned_abs() <= MAX_EXPONENT
        };
        if step.constant.is_some() != needs_constant || !step.constant.iter().all(fits) {
            return Err(format!("step {index} has the constant {:?}", step.constant));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(steps: &str) -> Result<(), String> {
        let steps: Vec<Step> = serde_json::from_str(steps).map_err(|error| error.to_string())?;
        check(&steps)
    }

    #[test]
    fn steps_read_what_is_there() {
        let silu = r#"[{"name":"sigmoid","operands":[0]},{"name":"mul","operands":[0,1]}]"#;
        assert_eq!(parse(silu), Ok(()));
        for bad in [
            r#"[{"name":"sigmoid","operands":[1]}]"#,
            r#"[{"name":"sigmoid","operands":[]}]"#,
            r#"[{"name":"tanh","operands":[0,0]}]"#,
            r#"[{"name":"mul","operands":[0]}]"#,
            r#"[{"name":"cosine","operands":[0]}]"#,
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        let long = vec![r#"{"name":"exp","operands":[0]}"#; MAX_STEPS + 1].join(",");
        assert!(parse(&format!("[{long}]")).is_err());
    }

    #[test]
    fn constants_are_there_where_they_are_needed_and_normal() {
        let step = |name: &str, constant: &str| format!(r#"[{{"name":"{name}","operands":[0]{constant}}}]"#);
        assert_eq!(parse(&step("scale", r#","constant":{"mantissa":-3,"exponent":-1}"#)), Ok(()));
        for (name, constant) in [
            ("scale", ""),
            ("tanh", r#","constant":{"mantissa":1,"exponent":0}"#),
            ("shift", r#","constant":{"mantissa":9007199254740993,"exponent":0}"#),
            ("shift", r#","constant":{"mantissa":1,"exponent":401}"#),
            ("shift", r#","constant":{"mantissa":1,"exponent":-401}"#),
            ("shift", r#","constant":0.5"#),
        ] {
            assert!(parse(&step(name, constant)).is_err(), "{name} {constant}");
        }
    }
}
