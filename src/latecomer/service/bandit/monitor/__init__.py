"""Statistics behind a bandit's alarms: expected and missing conversions, delays, and features."""
