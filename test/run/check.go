package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// checkSource runs gofmt and vet, and prints what they find. It returns true if they find nothing.
func checkSource(ctx context.Context, packages []string) (bool, error) {
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
	cmd := exec.CommandContext(ctx, "go", append([]string{"vet"}, packages...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return false, ctx.Err()
	}
	return ok, nil
}

// startStaticcheck starts staticcheck. The function that it returns waits for its end, prints what it has found, and
// returns true if that is nothing. Staticcheck works on one package after the other for long, so it runs beside the
// linker and the first tests.
func startStaticcheck(ctx context.Context, packages []string) (wait func() bool) {
	fmt.Println("check: staticcheck  (beside the tests)")
	var (
		out   []byte
		err   error
		group sync.WaitGroup
	)
	group.Go(func() {
		cmd := inProcessGroup(exec.CommandContext(ctx, "go", append([]string{"tool", "staticcheck"}, packages...)...))
		out, err = cmd.CombinedOutput()
	})
	return sync.OnceValue(func() bool {
		group.Wait()
		if err != nil && ctx.Err() == nil {
			fmt.Printf("check: staticcheck: %v\n%s", err, out)
		}
		return err == nil
	})
}
