package config

import "testing"

// FuzzParse: any file gives a configuration or errors, and never a panic.
func FuzzParse(f *testing.F) {
	f.Add(fullConfig)
	f.Add(minimalConfig)
	f.Add("version: 1\ndatabases: { app: { policy: *x } }\n? [a]\n: b\n")
	f.Add("agents: &a { <<: *a }\n")
	f.Add("version: !!int 1\nlisten: |\n  x\n")
	f.Fuzz(func(t *testing.T, text string) {
		cfg, err := load(text, nil)
		if (cfg == nil) == (err == nil) {
			t.Errorf("neither or both: %v, %v", cfg, err)
		}
	})
}
