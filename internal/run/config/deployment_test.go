package config

import (
	"os"
	"regexp"
	"testing"
)

// The configuration in docs/howto/deployment.md is valid. With it, pgconsent serve writes files only where the page's
// systemd unit allows writing.
func TestConfigurationOfADeployment(t *testing.T) {
	page, err := os.ReadFile("../../../docs/howto/deployment.md")
	if err != nil {
		t.Fatal(err)
	}
	codeBlocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	if len(codeBlocks) < 2 {
		t.Fatal("the page has no configuration, or no parts of one")
	}
	cfg, err := load(string(codeBlocks[0][1]), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, codeBlock := range codeBlocks[1:] {
		if _, err := load(minimalConfig+string(codeBlock[1]), nil); err != nil {
			t.Errorf("%s: %v", codeBlock[1], err)
		}
	}
	unit, err := os.ReadFile("../../../deploy/pgconsent.service")
	if err != nil {
		t.Fatal(err)
	}
	state := regexp.MustCompile(`(?m)^StateDirectory=(.*)$`).FindSubmatch(unit)
	if state == nil {
		t.Fatal("the unit has no StateDirectory")
	}
	for name, path := range map[string]string{"credentials": cfg.Credentials, "audit.file": cfg.Audit.File,
		"audit.key": cfg.Audit.Key, "audit.anchor": cfg.Audit.Anchor} {
		if folder := "/var/lib/" + string(state[1]) + "/"; len(path) <= len(folder) || path[:len(folder)] != folder {
			t.Errorf("%s is %q, outside %s, where the service cannot write", name, path, folder)
		}
	}
}
