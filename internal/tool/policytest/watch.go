package policytest

import (
	"context"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// quietTime is how long all files must be unchanged before the tests run again, since editors write in several steps.
const quietTime = 200 * time.Millisecond

// WaitForChange returns when one of the files, or a file in one of the folders, has changed, or when ctx ends. It also
// notices files that an editor replaces, and files that do not exist yet.
func WaitForChange(ctx context.Context, files []string) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	defer w.Close()
	watchedFiles := map[string]bool{}
	for _, file := range files {
		abs, err := filepath.Abs(file)
		if err != nil {
			return err
		}
		watchedFiles[abs] = true
		for _, dir := range []string{filepath.Dir(abs), abs} {
			if err := w.Add(dir); err != nil && dir != abs {
				return err
			}
		}
	}
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event := <-w.Events:
			if watchedFiles[event.Name] || watchedFiles[filepath.Dir(event.Name)] {
				timer.Reset(quietTime)
			}
		case err := <-w.Errors:
			if err != nil {
				return err
			}
		case <-timer.C:
			return nil
		}
	}
}
