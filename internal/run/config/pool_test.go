package config

import (
	"strings"
	"testing"
)

func TestPool(t *testing.T) {
	const file = "version: 1\ndatabases: { app: { policy: policy.yaml, owners: [o]%s } }\nagents: { a: { database: app%s } }\n"
	configWith := func(ofDatabase, ofAgent string) string {
		text := strings.Replace(file, "%s", ofDatabase, 1)
		return strings.Replace(text, "%s", ofAgent, 1)
	}
	for _, c := range []struct {
		ofDatabase, ofAgent string
		want                Pool
	}{
		{"", "", Pool{PoolSession, 20, "5s"}},
		{", pool: { mode: transaction }", "", Pool{PoolTransaction, 20, "5s"}},
		{", pool: { mode: transaction, size: 7, wait: 1s }", "", Pool{PoolTransaction, 7, "1s"}},
		{", pool: { mode: transaction, size: 7, wait: 1s }", ", pool: { size: 3 }", Pool{PoolTransaction, 3, "1s"}},
		{", pool: { mode: transaction }", ", pool: { mode: session }", Pool{PoolSession, 20, "5s"}},
	} {
		loadedConfig, err := load(configWith(c.ofDatabase, c.ofAgent), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := loadedConfig.PoolOf("a"); got != c.want {
			t.Errorf("%s%s: %v, want %v", c.ofDatabase, c.ofAgent, got, c.want)
		}
	}
	for _, problems := range []string{"mode: statement", "size: -1", "size: 10001", "wait: 0s", "wait: 11m", "wait: soon"} {
		for _, text := range []string{configWith(", pool: { "+problems+" }", ""), configWith("", ", pool: { "+problems+" }")} {
			if _, err := load(text, nil); err == nil || !strings.Contains(err.Error(), ".pool.") {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}
