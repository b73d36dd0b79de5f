package config

import (
	"os"
	"regexp"
	"testing"
)

// The configuration in the page about deployment is valid. The files that it makes "serve" write are where the systemd
// unit allows writing.
func TestConfigurationOfADeployment(t *testing.T) {
	page, err := os.ReadFile("../../../docs/howto/deployment.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) < 2 {
		t.Fatal("the page has no configuration, or no parts of one")
	}
	cfg, err := load(string(blocks[0][1]), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range blocks[1:] {
		if _, err := load(least+string(part[1]), nil); err != nil {
			t.Errorf("%s: %v", part[1], err)
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
