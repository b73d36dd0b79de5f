package pgtest

import (
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"testing"
)

// The ports that [FreeAddress] returns. They are below those that systems give to outgoing connections (32768 and more on
// Linux), of which another process could take one before the caller listens on it.
const (
	lowestPort = 10_240
	portCount  = 22_000
)

// portsTried is how many ports this process has tried, and an offset at which no other process begins.
var portsTried atomic.Uint32

func init() { portsTried.Store(uint32(os.Getpid()) * 101) }

// FreeAddress returns an address of the loopback interface on which nobody listens, and which it has not returned
// before.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range portCount {
		address := fmt.Sprintf("127.0.0.1:%d", lowestPort+portsTried.Add(1)%portCount)
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}
