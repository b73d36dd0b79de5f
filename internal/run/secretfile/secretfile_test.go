//go:build unix

package secretfile

import (
	"io/fs"
	"syscall"
	"testing"
	"time"
)

type file struct {
	mode fs.FileMode
	uid  uint32
}

func (file) Name() string        { return "secret" }
func (file) Size() int64         { return 1 }
func (f file) Mode() fs.FileMode { return f.mode }
func (file) ModTime() time.Time  { return time.Time{} }
func (file) IsDir() bool         { return false }
func (f file) Sys() any          { return &syscall.Stat_t{Uid: f.uid} }

func TestExposed(t *testing.T) {
	for _, c := range []struct {
		mode fs.FileMode
		uid  uint32
		want bool
	}{
		{0o600, 1000, false}, {0o400, 1000, false}, {0o600, 0, false}, {0o440, 0, false}, {0o640, 0, false},
		{0o640, 1000, true}, {0o440, 1000, true}, {0o604, 0, true}, {0o660, 0, true}, {0o620, 0, true}, {
			0o650, 0, true}, {0o644, 0, true}, {0o602, 1000, true},
	} {
		if got := IsExposed(file{c.mode, c.uid}); got != c.want {
			t.Errorf("mode %04o, uid %d: exposed %t, want %t", c.mode, c.uid, got, c.want)
		}
	}
}
