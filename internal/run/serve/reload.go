package serve

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pgconsent/pgconsent/internal/run/config"
)

// Reload reads agents, operators, credentials, policies and the certificate again. If one of them has an error, its old
// version stays active.
func (s *Service) Reload() error {
	s.reloadMu.Lock()
	defer s.reloadMu.Unlock()
	previous := s.config.Load()
	newConfig, err := config.Load(previous.Path)
	if err != nil {
		s.log.Error("the configuration was not reloaded; the old one stays active", "error", err)
		return err
	}
	var failures []error
	if settingsNeedingRestart(previous) != settingsNeedingRestart(newConfig) {
		s.log.Warn(
			"changes of listen, proxy_protocol, http, upstream, databases, credentials, enforcement, audit and air apply at the next start")
	}
	if certificate, err := loadCertificate(newConfig.TLS); err != nil {
		failures = append(failures, err)
	} else if (certificate == nil) == (s.certificate.Load() == nil) {
		s.certificate.Store(certificate)
	}
	if err := s.credentials.Reload(); err != nil {
		failures = append(failures, err)
	}
	if err := s.operators.credentials.Reload(); err != nil {
		failures = append(failures, err)
	}
	runningConfig := *previous
	runningConfig.Agents, runningConfig.Admin.Users = newConfig.Agents, newConfig.Admin.Users
	s.config.Store(&runningConfig)
	s.enforcer.SetAgents(s.enforcedAgents(&runningConfig))
	if err := s.enforcer.Reload(); err != nil {
		failures = append(failures, err)
	}
	if err := errors.Join(failures...); err != nil {
		s.log.Error("reload: settings that are wrong were not applied", "error", err)
		return err
	}
	s.log.Info("reloaded", "agents", len(runningConfig.Agents))
	return nil
}

// settingsNeedingRestart returns a text with all settings that only a restart can change. Reload compares the texts of
// the old and the new configuration.
func settingsNeedingRestart(c *config.Config) string {
	var b strings.Builder
	fmt.Fprintln(&b, c.Listen, c.Proxies, c.HTTP, c.Upstream, c.Credentials, c.Admin.Credentials, c.Enforcement,
		c.Audit, c.AIR, c.TLS == nil)
	if c.JWT != nil {
		fmt.Fprintln(&b, *c.JWT)
	}
	for _, name := range sortedKeys(c.Databases) {
		fmt.Fprintln(&b, name, *c.Databases[name])
	}
	return b.String()
}
