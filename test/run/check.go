package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// checkCode runs gofmt, vet and staticcheck, and prints what they find. It returns true if they find nothing.
func checkCode(ctx context.Context, packages []string) (bool, error) {
	fmt.Println("check: gofmt")
	out, err := exec.CommandContext(ctx, "gofmt", "-l", ".").Output()
	if err != nil {
		return false, fmt.Errorf("gofmt: %w", err)
	}
	ok := true
	if unformatted := strings.Fields(string(out)); len(unformatted) > 0 {
		ok = false
		fmt.Println("not formatted (gofmt -w):", strings.Join(unformatted, " "))
	}
	fmt.Println("check: go vet  (the first time the SQL parser is compiled: some minutes without output)")
	for _, tool := range [][]string{append([]string{"vet"}, packages...), append([]string{"tool", "staticcheck"}, packages...)} {
		if tool[0] == "tool" {
			fmt.Println("check: staticcheck")
		}
		cmd := exec.CommandContext(ctx, "go", tool...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			if ctx.Err() != nil {
				return false, ctx.Err()
			}
			ok = false
		}
	}
	return ok, nil
}
