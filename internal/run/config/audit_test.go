package config

import (
	"strings"
	"testing"
	"time"
)

// auditDefaults returns an audit section with the default values.
func auditDefaults(mode, file string) Audit {
	return Audit{Mode: mode, Sink: "file", File: file, Key: file + ".key", Anchor: file + ".anchor", Rotate: Rotate{Size: "64MiB"}}
}

func TestAudit(t *testing.T) {
	base := "version: 1\ndatabases: { app: { policy: p.yaml, owners: [o] } }\naudit: "
	for _, tc := range []struct{ audit, want string }{
		{"{ rotate: { size: 1GiB, age: 24h }, retention: 400d }", ""},
		{"{ file: /var/log/audit/, key: /etc/k, anchor: /mnt/a }", ""},
		{"{ key: audit/key }", "audit.key is inside the folder"},
		{"{ file: a/b, anchor: a/b/c/d }", "audit.anchor is inside the folder"},
		{"{ key: x, anchor: x }", "the same file"},
		{"{ rotate: { size: 64 megs } }", "is not a size"},
		{"{ rotate: { size: 1KiB } }", "is not a size that a segment can have"},
		{"{ rotate: { size: 99999999999GiB } }", "is not a size"},
		{"{ rotate: { age: soon } }", "is not a time"},
		{"{ retention: 1h }", "audit.retention"},
		{"{ retention: forever }", "audit.retention"},
		{"{ sink: database }", ""},
		{"{ sink: database, database: app, chain: proxy-1, retention: 30d }", ""},
		{"{ sink: both }", "One of: file, database"},
		{"{ sink: database, database: other }", `no database "other"`},
		{"{ sink: database, chain: 'a b' }", "not a name that a chain can have"},
		{"{ sink: database, chain: a-reports }", "not a name that a chain can have"},
		{"{ sink: database, rotate: { age: 24h } }", "audit.rotate is about files"},
		{"{ chain: a }", "audit.chain says where records are in a database"},
		{"{ database: app }", "audit.database says where records are in a database"},
		{"{ retain: 1d }", `unknown key "retain"`},
	} {
		cfg, err := parseConfig("/etc/p.yaml", "p.yaml", []byte(base+tc.audit+"\n"), func(string) string { return "" })
		if tc.want == "" {
			if err != nil {
				t.Errorf("%s: %v", tc.audit, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, %v; want %q", tc.audit, cfg, err, tc.want)
		}
	}
	cfg, err := parseConfig("/etc/p.yaml", "p.yaml", []byte(base+"{ rotate: { size: 1MiB, age: 90m }, retention: 2d }\n"), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	if size, age, keep := cfg.Audit.SegmentBounds(); size != 1<<20 || age != 90*time.Minute || keep != 48*time.Hour {
		t.Errorf("%d, %s, %s", size, age, keep)
	}
}
