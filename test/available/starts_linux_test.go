package available_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/test/instance"
)

var processors = float64(runtime.NumCPU())

// TestStarts is a measurement: how long serve and PostgreSQL take from their start to the first answer for an agent,
// when both together get a share of one processor. It also counts the lookups that are refused afterwards.
func TestStarts(t *testing.T) {
	seconds, _ := strconv.Atoi(os.Getenv("AVAILABLE_SECONDS"))
	if seconds == 0 {
		t.Skip("a measurement: make bench-available")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "pgconsent")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/pgconsent")
	build.Dir = instance.RepoPath(t, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	data := filepath.Join(dir, "demo")
	fmt.Println("available: the demo is made")
	firstDemo := startDemo(t, program, data, processors)
	firstDemo.awaitAnswer(t, time.Now(), 0)
	firstDemo.end()
	var rows [][]string
	for _, share := range []float64{processors, 0.1} {
		fmt.Printf("available: a start at %g of a processor, and %d s of lookups\n", share, seconds)
		start := time.Now()
		d := startDemo(t, program, data, share)
		answerTime, lookups, refused := d.awaitAnswer(t, start, time.Duration(seconds)*time.Second)
		d.end()
		rows = append(rows, []string{fmt.Sprintf("%g", share), fmt.Sprintf("%.1f", answerTime.Seconds()),
			strconv.Itoa(lookups), strconv.Itoa(refused)})
	}
	writeTable(t, "starts", []string{"processors", "first answer, s", "lookups", "refused"}, rows)
}

// runningDemo is a demo's process, with the DSN of an agent.
type runningDemo struct {
	cmd     *exec.Cmd
	dsn     string
	release func() // ends the limit of the demo's processor time
}

// startDemo starts a demo that gets so much of one processor.
func startDemo(t *testing.T, program, data string, share float64) *runningDemo {
	t.Helper()
	address := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().String()
	}
	d := &runningDemo{cmd: exec.Command(program, "demo", "--dir", data, "--listen", address(), "--http", address(), "--json")}
	out, err := d.cmd.StdoutPipe()
	if err == nil {
		err = d.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, release := context.WithCancel(context.Background())
	d.release = release
	if share < processors {
		go throttle(ctx, d.cmd.Process.Pid, share)
	}
	t.Cleanup(d.end)
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatalf("the demo has not begun to serve: %v", err)
	}
	var output struct{ Agents map[string]string }
	if err := json.Unmarshal(line, &output); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	d.dsn = output.Agents["chat"]
	return d
}

func (d *runningDemo) end() {
	if d.release(); d.cmd.ProcessState == nil {
		_ = d.cmd.Process.Signal(syscall.SIGTERM)
		_ = d.cmd.Wait()
	}
}

// awaitAnswer sends a lookup until it is answered. Then it sends lookups for so long, and counts them and the refused
// ones.
func (d *runningDemo) awaitAnswer(t *testing.T, start time.Time, duration time.Duration) (firstAnswer time.Duration, lookups, refused int) {
	t.Helper()
	lookUp := func() error {
		c, err := pgconn.Connect(t.Context(), d.dsn)
		if err != nil {
			return err
		}
		defer c.Close(context.WithoutCancel(t.Context()))
		_, err = c.Exec(t.Context(), "SELECT id FROM memories LIMIT 1").ReadAll()
		return err
	}
	for lookUp() != nil {
		time.Sleep(20 * time.Millisecond)
	}
	firstAnswer = time.Since(start)
	for end := time.Now().Add(duration); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		lookups++
		if err := lookUp(); err != nil {
			refused++
			t.Logf("refused: %v", err)
		}
	}
	return firstAnswer, lookups, refused
}
