//! Timers of hooks: due every so many steps, or every so many seconds.

use std::time::Duration;

/// Distance of the times at which a hook acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookInterval {
    /// Every so many steps.
    Steps(u64),
    /// Whenever so much time has passed.
    Time(Duration),
    /// Not at all.
    Never,
}

/// Timer of a hook, by the rules of TensorFlow's `SecondOrStepTimer`: it is due at the first step
/// that it is asked about, never twice for one step, and then whenever its interval has passed
/// since it was last triggered.
#[derive(Debug, Clone)]
pub struct SecondOrStepTimer {
    interval: HookInterval,
    last: Option<(i64, Duration)>,
}

/// Distance from one trigger of a timer to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SinceTrigger {
    /// Steps.
    pub steps: i64,
    /// Time.
    pub time: Duration,
}

impl SecondOrStepTimer {
    /// A timer that was never triggered.
    pub fn new(interval: HookInterval) -> SecondOrStepTimer {
        SecondOrStepTimer { interval, last: None }
    }

    /// Whether it is due at a step.
    pub fn is_due(&self, step: i64, now: Duration) -> bool {
        let Some((last_step, last_time)) = self.last else {
            return self.interval != HookInterval::Never;
        };
        let has_passed = match self.interval {
            HookInterval::Steps(steps) => step >= last_step.saturating_add_unsigned(steps),
            HookInterval::Time(time) => now >= last_time.saturating_add(time),
            HookInterval::Never => false,
        };
        step != last_step && has_passed
    }

    /// Notes that it was triggered; returns the distance from the last time, if there was one.
    pub fn trigger(&mut self, step: i64, now: Duration) -> Option<SinceTrigger> {
        let last = self.last.replace((step, now));
        last.map(|(last_step, last_time)| SinceTrigger {
            steps: step.saturating_sub(last_step),
            time: now.saturating_sub(last_time),
        })
    }

    /// The step at which it was last triggered.
    pub fn last_step(&self) -> Option<i64> {
        self.last.map(|(step, _)| step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// The steps from 0 to 10, a second each, at which a timer is due and triggered.
    fn due(interval: HookInterval) -> Vec<i64> {
        let mut timer = SecondOrStepTimer::new(interval);
        let is_due = |&step: &i64| {
            let now = SECOND * u32::try_from(step).unwrap();
            let is_due = timer.is_due(step, now);
            if is_due {
                timer.trigger(step, now);
            }
            is_due
        };
        (0..=10).filter(is_due).collect()
    }

    #[test]
    fn timers_are_due_at_first_and_then_at_their_interval() {
        assert_eq!(due(HookInterval::Steps(3)), [0, 3, 6, 9]);
        assert_eq!(due(HookInterval::Time(SECOND * 4)), [0, 4, 8]);
        assert_eq!(due(HookInterval::Time(SECOND * 5 / 2)), [0, 3, 6, 9]);
        assert_eq!(due(HookInterval::Never), [] as [i64; 0]);
        assert_eq!(due(HookInterval::Steps(0)), Vec::from_iter(0..=10));
    }

    #[test]
    fn a_step_triggers_once() {
        let mut timer = SecondOrStepTimer::new(HookInterval::Time(SECOND));
        assert_eq!(timer.trigger(5, SECOND), None);
        assert!(!timer.is_due(5, SECOND * 9));
        assert!(timer.is_due(4, SECOND * 9), "a counter may have been restored");
        assert!(timer.is_due(6, SECOND * 2));
        assert!(!timer.is_due(6, SECOND * 3 / 2));
        let since = timer.trigger(9, SECOND * 3);
        assert_eq!(since, Some(SinceTrigger { steps: 4, time: SECOND * 2 }));
        assert_eq!(timer.last_step(), Some(9));
    }

    #[test]
    fn counts_do_not_overflow() {
        let mut timer = SecondOrStepTimer::new(HookInterval::Steps(u64::MAX));
        timer.trigger(i64::MAX - 1, Duration::MAX);
        assert!(timer.is_due(i64::MAX, Duration::MAX));
        timer.trigger(i64::MIN, Duration::ZERO);
        assert!(!timer.is_due(0, Duration::MAX));
    }
}
