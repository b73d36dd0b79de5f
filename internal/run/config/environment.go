package config

import "strconv"

// Variables lists the environment variables that override keys of the file, each with its key.
var Variables = []struct{ Name, Key string }{
	{"PGCONSENT_LISTEN", "listen"},
	{"PGCONSENT_HTTP_LISTEN", "http.listen"},
	{"PGCONSENT_UPSTREAM_HOST", "upstream.host"},
	{"PGCONSENT_UPSTREAM_PORT", "upstream.port"},
	{"PGCONSENT_UPSTREAM_TLS", "upstream.tls"},
	{"PGCONSENT_CREDENTIALS", "credentials"},
	{"PGCONSENT_ENFORCEMENT", "enforcement"},
	{"PGCONSENT_AUDIT_MODE", "audit.mode"},
	{"PGCONSENT_AUDIT_FILE", "audit.file"},
	{"PGCONSENT_AUDIT_CHAIN", "audit.chain"},
	{"DEFAULT_CONSENT_DURATION_DAYS", "consent.default_duration_days"},
	{"CONSENT_WARNING_DAYS", "consent.warning_days"},
	{"PARTNERSHIP_REVIEW_TIMEOUT", "consent.review_timeout"},
	{"ENABLE_AUTO_RENEWAL", "consent.auto_renewal"},
	{"REQUIRE_EXPLICIT_CONSENT", "consent.require_explicit"},
	{"ENABLE_DECAY_PROTOCOL", "consent.decay"},
}

// applyEnvironment sets each key whose environment variable is set to the value of the variable.
func (c *Config) applyEnvironment(d *decoder, getenv func(string) string) {
	for _, v := range Variables {
		value := getenv(v.Name)
		if value == "" {
			continue
		}
		d.textByPath[v.Key] = value + ", by " + v.Name
		switch v.Key {
		case "listen":
			c.Listen = parseAddresses(value)
			for i, address := range c.Listen {
				d.textByPath[itemPath("listen", i)] = address + ", by " + v.Name
			}
		case "http.listen":
			c.HTTP.Listen = value
		case "upstream.host":
			c.Upstream.Host = value
		case "upstream.port":
			port, err := strconv.Atoi(value)
			if err != nil {
				d.addProblem("", "", "%s must be a whole number: here it is %s", v.Name, value)
			}
			c.Upstream.Port = port
		case "upstream.tls":
			c.Upstream.TLS = value
		case "credentials":
			c.Credentials = value
		case "enforcement":
			c.Enforcement = Enforcement(value)
		case "audit.mode":
			c.Audit.Mode = value
		case "audit.file":
			c.Audit.File = value
		case "audit.chain":
			if c.Audit.Sink == SinkDatabase { // only an audit in a database has chains
				c.Audit.Chain = value
			}
		default:
			// The other variables override keys of the section consent, if the file has this section.
			if c.Consent != nil {
				c.Consent.setFromEnvironment(d, v.Name, v.Key, value)
			}
		}
	}
}
