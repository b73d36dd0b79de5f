package config

import (
	"net/url"
	"strconv"
	"time"
)

// Consent has the section consent. Without this section there is no consent registry.
type Consent struct {
	Key        string `yaml:"key"`    // file with the registry's key, which pgconsent migrate creates
	Anchor     string `yaml:"anchor"` // file with the number and hash of the registry's last record
	Controller string `yaml:"controller"`

	DurationDays    int    `yaml:"default_duration_days"`
	WarningDays     int    `yaml:"warning_days"`
	ReviewTimeout   string `yaml:"review_timeout"`
	AutoRenewal     *bool  `yaml:"auto_renewal"`
	RequireExplicit *bool  `yaml:"require_explicit"`
	Decay           *bool  `yaml:"decay"`

	SweepEvery string   `yaml:"sweep_every"`
	Webhook    *Webhook `yaml:"webhook"`
}

// Webhook is the HTTP address to which pgconsent sends warnings and decisions about consents.
type Webhook struct {
	URL    string `yaml:"url"`
	Secret string `yaml:"secret"` // key that signs the messages: a file, or a variable PGCONSENT_…
}

// ReviewDuration returns the time within which the agent's side has to decide about a requested partnership.
func (c *Consent) ReviewDuration() time.Duration { return mustParseDuration(c.ReviewTimeout) }

// SweepInterval returns the time between two sweeps, which remove expired data.
func (c *Consent) SweepInterval() time.Duration { return mustParseDuration(c.SweepEvery) }

// mustParseDuration parses a duration that was checked before. It returns 0 for "".
func mustParseDuration(text string) time.Duration {
	d, _ := time.ParseDuration(text)
	return d
}

func (c *Consent) defaults() {
	flag := func(value bool) *bool { return &value }
	setDefault(&c.Key, "consent.key")
	setDefault(&c.Anchor, "consent.anchor")
	setDefault(&c.DurationDays, 14)
	setDefault(&c.WarningDays, min(3, max(1, c.DurationDays)))
	setDefault(&c.ReviewTimeout, "48h")
	setDefault(&c.AutoRenewal, flag(true))
	setDefault(&c.RequireExplicit, flag(false))
	setDefault(&c.Decay, flag(true))
	setDefault(&c.SweepEvery, "6h")
}

func (c *Consent) check(d *decoder) {
	if c.DurationDays < 1 || c.DurationDays > 36500 {
		d.addProblem("consent.default_duration_days", "consent: { default_duration_days: 14 }",
			"consent.default_duration_days must be between 1 and 36500")
	}
	if c.WarningDays < 1 || c.WarningDays > c.DurationDays {
		d.addProblem("consent.warning_days", "consent: { warning_days: 3 }",
			"consent.warning_days must be between 1 and default_duration_days, which is %d", c.DurationDays)
	}
	for _, t := range []struct {
		key, value     string
		minimum, limit time.Duration
	}{{"consent.review_timeout", c.ReviewTimeout, time.Second, 8760 * time.Hour}, {
		"consent.sweep_every", c.SweepEvery, time.Second, 168 * time.Hour}} {
		if v, err := time.ParseDuration(t.value); err != nil || v < t.minimum || v > t.limit {
			d.addProblem(t.key, "48h, 90m and 30s are times.", "%s must be a time between %v and %v", t.key, t.minimum, t.limit)
		}
	}
	if c.Key == c.Anchor {
		d.addProblem("consent.anchor", "", "consent.key and consent.anchor are the same file")
	}
	if c.Webhook != nil {
		u, err := url.Parse(c.Webhook.URL)
		switch {
		case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
			d.addProblem("consent.webhook.url", "webhook: { url: https://app.example/consent, secret: webhook.pw }",
				"consent.webhook.url must be a URL with https")
		case u.Scheme == "http" && !isLoopbackHost(u.Hostname()):
			d.addProblem("consent.webhook.url", "Off this machine it has to be https.",
				"consent.webhook.url must be a URL with https")
		case c.Webhook.Secret == "":
			d.addProblem("consent.webhook", "webhook: { url: …, secret: webhook.pw }",
				"consent.webhook needs a secret, which signs the messages")
		}
	}
}

// setFromEnvironment sets a key of the section consent to the value of an environment variable.
func (c *Consent) setFromEnvironment(d *decoder, name, key, value string) {
	number := func(field *int) {
		n, err := strconv.Atoi(value)
		if err != nil {
			d.addProblem("", "", "%s must be a whole number: here it is %s", name, value)
		}
		*field = n
	}
	flag := func(field **bool) {
		b, err := strconv.ParseBool(value)
		if err != nil {
			d.addProblem("", "", "%s must be true or false: here it is %s", name, value)
		}
		*field = &b
	}
	switch key {
	case "consent.default_duration_days":
		number(&c.DurationDays)
	case "consent.warning_days":
		number(&c.WarningDays)
	case "consent.review_timeout":
		c.ReviewTimeout = value
	case "consent.auto_renewal":
		flag(&c.AutoRenewal)
	case "consent.require_explicit":
		flag(&c.RequireExplicit)
	case "consent.decay":
		flag(&c.Decay)
	default:
		d.addProblem("", "", "%s is not understood", name)
	}
}
