package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set when linking.
var version string

type versionCmd struct{}

func (versionCmd) Run(s *session) error {
	v := version
	if v == "" {
		v = "unknown"
		if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
			v = info.Main.Version
		}
	}
	if s.json {
		return s.print(map[string]string{"version": v, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
	}
	_, err := fmt.Fprintf(s.out, "pgconsent %s (%s, %s/%s)\n", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
