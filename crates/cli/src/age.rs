//! Ages as people write them: a number and a unit.

use std::time::Duration;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("write it as a number and a unit, such as 30s, 10m, 1h or 2d")]
pub struct InvalidAge;

pub fn parse_age(text: &str) -> Result<Duration, InvalidAge> {
    let at = text.find(|c: char| !c.is_ascii_digit()).ok_or(InvalidAge)?;
    let (number, unit) = text.split_at(at);
    let seconds: u64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return Err(InvalidAge),
    };
    let number: u64 = number.parse().map_err(|_| InvalidAge)?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or(InvalidAge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_a_number_and_a_unit() {
        for (text, seconds) in [("30s", 30), ("10m", 600), ("1h", 3600), ("2d", 172_800)] {
            assert_eq!(parse_age(text), Ok(Duration::from_secs(seconds)));
        }
        for text in ["", "10", "h", "1.5h", "-1h", "1y", "1 h", "99999999999999999999s"] {
            assert_eq!(parse_age(text), Err(InvalidAge), "{text}");
        }
        assert_eq!(parse_age("9999999999999999999d"), Err(InvalidAge));
    }
}
