package oracle

import (
	"os"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/test/instance"
)

func TestZZ(t *testing.T) {
	s := find(t, os.Getenv("ZZS"))
	b := s.Behind(t)
	p := instance.Start(t, instance.Doors, b, s.Attributes)
	os.WriteFile("/tmp/walls/dsn", []byte(p.DSN("agent", s.Name)+"\n"+b.DB.DSN("postgres", "")+"\n"), 0o644)
	for i := 0; i < 1800; i++ {
		time.Sleep(time.Second)
		if _, err := os.Stat("/tmp/walls/stop"); err == nil {
			return
		}
	}
}
