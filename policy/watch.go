package policy

import (
	"fmt"
	"os"
	"strings"
)

// Watch notes the state of a policy's files and folders as they were read, and tells whether they change. It is for one
// goroutine.
type Watch struct {
	seen map[string]string
	last string // the state at the last call of Changed
}

// note notes a file or folder before it is read.
func (w *Watch) note(path string) {
	if _, ok := w.seen[path]; !ok {
		w.seen[path] = fileState(path)
	}
}

// fileState changes if a file changes, or the entries of a folder.
func fileState(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return "none"
	}
	if !info.IsDir() {
		return fmt.Sprint(info.Size(), " ", info.ModTime().UnixNano(), " ", inode(info))
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return "none"
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, "\x00")
}

// Changed tells whether something has changed since it was read, and has not changed since the last call of Changed.
// People who edit several files have the time between two calls to finish.
func (w *Watch) Changed() bool {
	var b strings.Builder
	same := true
	for _, path := range keys(w.seen) {
		now := fileState(path)
		same = same && now == w.seen[path]
		fmt.Fprintf(&b, "%q %q\n", path, now)
	}
	settled := b.String() == w.last
	w.last = b.String()
	return !same && settled
}
