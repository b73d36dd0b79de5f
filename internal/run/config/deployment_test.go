package config

import (
	"os"
	"regexp"
	"testing"
)

// The configuration of the page on deploying is one, and what serve writes in it is where the unit lets it write.
func TestConfigurationOfADeployment(t *testing.T) {
	page, err := os.ReadFile("../../../docs/howto/deployment.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	if m == nil {
		t.Fatal("the page has no configuration")
	}
	c, err := load(string(m[1]), nil)
	if err != nil {
		t.Fatal(err)
	}
	unit, err := os.ReadFile("../../../deploy/pgconsent.service")
	if err != nil {
		t.Fatal(err)
	}
	state := regexp.MustCompile(`(?m)^StateDirectory=(.*)$`).FindSubmatch(unit)
	if state == nil {
		t.Fatal("the unit has no StateDirectory")
	}
	for name, path := range map[string]string{"credentials": c.Credentials, "audit.file": c.Audit.File,
		"audit.key": c.Audit.Key, "audit.anchor": c.Audit.Anchor} {
		if folder := "/var/lib/" + string(state[1]) + "/"; len(path) <= len(folder) || path[:len(folder)] != folder {
			t.Errorf("%s is %q, outside %s, where the service cannot write", name, path, folder)
		}
	}
}
