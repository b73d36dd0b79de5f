package config

import "time"

// AIR has the section air: thresholds and text of the artificial interaction reminder. Package air has the defaults of
// keys that are left out.
type AIR struct {
	TimeThreshold    string `yaml:"time_threshold"`
	MessageThreshold int    `yaml:"message_threshold"`
	Window           string `yaml:"window"`
	Idle             string `yaml:"idle"`
	Keep             string `yaml:"keep"`
	Sessions         int    `yaml:"sessions"`
	Reminder         string `yaml:"reminder"`
}

// Durations returns the durations of the section, which [Load] has checked.
func (a AIR) Durations() (after, window, idle, keep time.Duration) {
	return mustParseDuration(a.TimeThreshold), mustParseDuration(a.Window), mustParseDuration(a.Idle),
		mustParseDuration(a.Keep)
}

func (a *AIR) setDefaults() {
	setDefault(&a.TimeThreshold, "30m")
	setDefault(&a.Window, "30m")
	setDefault(&a.Idle, "30m")
	setDefault(&a.Keep, "1h")
	setDefault(&a.MessageThreshold, 20)
	setDefault(&a.Sessions, 1_000_000)
}

// maxMessages limits how many times of messages the sessions of interactions store together. Each takes 4 bytes of
// memory.
const maxMessages = 200_000_000

func (a *AIR) checkAIR(d *decoder) {
	for _, t := range []struct {
		key, value string
		limit      time.Duration
	}{{"time_threshold", a.TimeThreshold, 24 * time.Hour}, {"window", a.Window, 24 * time.Hour}, {
		"idle", a.Idle, 24 * time.Hour}, {"keep", a.Keep, 168 * time.Hour}} {
		if v, err := time.ParseDuration(t.value); err != nil || v < time.Second || v > t.limit {
			d.addProblem("air."+t.key, "30m, 90s and 2h are times.", "air.%s must be a time between 1s and %v", t.key, t.limit)
		}
	}
	if mustParseDuration(a.Keep) < mustParseDuration(a.Idle) {
		d.addProblem("air.keep", "A session would be forgotten before its pause has ended it.",
			"air.keep must be at least air.idle")
	}
	if a.MessageThreshold < 1 || a.MessageThreshold > 1000 {
		d.addProblem("air.message_threshold", "air: { message_threshold: 20 }",
			"air.message_threshold must be between 1 and 1000")
	}
	if a.Sessions < 1 || a.Sessions > 10_000_000 {
		d.addProblem("air.sessions", "air: { sessions: 1000000 }", "air.sessions must be between 1 and 10000000")
	} else if a.MessageThreshold*a.Sessions > maxMessages {
		d.addProblem("air.sessions", "Every session remembers as many messages as the threshold.",
			"air.sessions times air.message_threshold is more than %d", maxMessages)
	}
	if len(a.Reminder) > 4000 {
		d.addProblem("air.reminder", "", "air.reminder is longer than 4000 bytes")
	}
}
